/* Keeping a group of items in this handle's segment: all are appended, one fdatasync makes them
 * durable, and only then they are reported (I10). Of equal bodies only the first is written; later
 * ones get a record that refers to it. A sync that fails fails all of the group (I12); a write that
 * fails only what did not fit: the rest is written again, one by one. */
#include "pack.h"

#include "mem.h"
#include <errno.h>
#include <stdio.h>

/* Shorter bodies are written again: what refers to one is hardly shorter. */
enum { SHARE_FROM = 512 };

/* ---- digests of what was written ---- */

static struct recent *slot_of(struct pack *p, const unsigned char *sha256)
{
    if (!p->recent)
        p->recent = mem_zalloc(RECENT, sizeof(*p->recent));
    return &p->recent[(sha256[0] << 8 | sha256[1]) % RECENT];
}

static void remember(struct pack *p, const struct pending *v)
{
    struct recent *r = slot_of(p, v->item->sha256);
    memcpy(r->sha256, v->item->sha256, SHA256_LEN);
    r->at = v->own;
}

/* After bytes were taken back. */
static void forget_all(struct pack *p)
{
    free(p->recent);
    p->recent = NULL;
}

/* Bytes that are there and true, safe from lake_remove() until the row is written. 1: yes, with
 * what their record says; 0: no. */
static int hold(struct lake *l, const struct lake_span *at, const struct lake_item *item,
                struct record *r, struct pawl_err *err)
{
    bool there = false;
    int rc = pack_touch(l, at, 1, &there, err);
    if (rc < 0 || !there)
        return rc < 0 ? rc : 0;
    rc = pack_same(l, at, item->size, item->sha256, r, err);
    return rc == PAWL_ECORRUPT || rc == PAWL_ENOTFOUND ? 0 : rc < 0 ? rc : 1;
}

/* Were these bytes kept a while ago? */
static int find(struct pack *p, struct pending *v, struct record *r, struct pawl_err *err)
{
    const struct recent *known = slot_of(p, v->item->sha256);
    if (v->item->size < SHARE_FROM || !known->at.length ||
        memcmp(known->sha256, v->item->sha256, SHA256_LEN) != 0)
        return 0;
    v->earlier = known->at;
    int rc = pack_flush(p, err); /* they may still be in the buffer */
    return rc < 0 ? rc : hold(p->lake, &v->earlier, v->item, r, err);
}

static int find_same(struct pack *p, struct pending *v, struct record *r, struct pawl_err *err)
{
    struct lake_span s[2];
    if (!lake_spans(v->item->same->place, s))
        return err_set(err, PAWL_EINPUT, "what was kept before is in no segment");
    v->earlier = s[0];
    int rc = hold(p->lake, &v->earlier, v->item, r, err);
    return rc == 0 ? err_set(err, PAWL_ENOTFOUND, "what was kept before is gone") : rc;
}

/* ---- records ---- */

/* The body in pieces: out of memory, or out of the spool. */
static int each_piece(struct pack *p, const struct pending *v,
                      int (*each)(struct pack *p, struct sv bytes, struct pawl_err *err),
                      struct pawl_err *err)
{
    struct lake *l = p->lake;
    if (!v->spool)
        return each(p, v->item->body, err);
    for (int64_t at = 0; at < v->item->size;) {
        ssize_t n = l->disk->read(v->spool->temp.fd, lake_buffer(l), COPY_BUFFER, at);
        if (n <= 0)
            return disk_error(err, n ? errno : EIO, "cannot read %s/tmp/%s", l->path,
                              v->spool->temp.name);
        int rc = each(p, sv_make(lake_buffer(l), (size_t)n), err);
        if (rc < 0)
            return rc;
        at += n;
    }
    return 0;
}

static int hash_piece(struct pack *p, struct sv bytes, struct pawl_err *err)
{
    (void)err;
    sha256_update(&p->hash, bytes);
    return 0;
}

static int hash_block(struct pack *p, const struct pending *v, struct sv head, bool body,
                      unsigned char sum[SHA256_LEN], struct pawl_err *err)
{
    if (body && (v->block_known || !head.n)) {
        memcpy(sum, v->block_known ? v->block : v->item->sha256, SHA256_LEN);
        return 0;
    }
    sha256_init(&p->hash);
    sha256_update(&p->hash, head);
    int rc = body ? each_piece(p, v, hash_piece, err) : 0;
    sha256_final(&p->hash, sum);
    return rc;
}

/* One record: `head` and then, if `body`, the item's bytes. */
static int put_record(struct pack *p, struct pending *v, struct warc_record *r, struct sv head,
                      bool body, struct pawl_err *err)
{
    unsigned char sum[SHA256_LEN];
    bool squeeze = body && pending_squeezes(p->lake, v->item);
    int rc = hash_block(p, v, head, body, sum, err);
    r->block = sum;
    r->info = p->info;
    r->length = (int64_t)head.n + (body ? v->item->size : 0);
    if (rc == 0)
        rc = pack_begin(p, r, squeeze, err);
    if (rc == 0)
        rc = pack_piece(p, head, err);
    if (rc == 0 && body)
        rc = each_piece(p, v, pack_piece, err);
    return rc < 0 ? rc : pack_end(p, err);
}

/* What the records of one item have in common. */
static struct warc_record record_of(const struct lake_item *item)
{
    const struct exchange *x = item->from;
    struct warc_record r = {.at = clock_wall(), .uri = SV("about:blank")};
    if (x) {
        r.at = x->at.us ? x->at : r.at;
        r.uri = x->uri.p ? x->uri : r.uri;
        r.address = x->address;
    }
    return r;
}

static int put_request(struct pack *p, struct pending *v, const char *of, struct pawl_err *err)
{
    char id[RECORD_ID];
    struct warc_record r = record_of(v->item);
    record_id_new(&p->lake->ids, id);
    r.type = "request";
    r.id = id;
    r.concurrent = of;
    r.content_type = SV("application/http;msgtype=request");
    return put_record(p, v, &r, v->item->from->request, false, err);
}

/* `earlier` NULL: with the bytes; else it only refers to them. */
static int put_answer(struct pack *p, struct pending *v, const char *id,
                      const struct record *earlier, struct pawl_err *err)
{
    const struct lake_item *item = v->item;
    struct warc_record r = record_of(item);
    bool http = item->from && item->from->response.p;
    r.id = id;
    r.type = earlier ? "revisit" : http ? "response" : "resource";
    r.content_type = http ? SV("application/http;msgtype=response") : item->type;
    r.payload = item->sha256;
    if (earlier) {
        struct sv head = str_sv(&earlier->head);
        r.profile = item->same ? UNCHANGED : EQUAL;
        r.refers_id = warc_field(head, "WARC-Record-ID");
        r.refers_uri = warc_field(head, "WARC-Target-URI");
        r.refers_date = warc_field(head, "WARC-Date");
    }
    return put_record(p, v, &r, http ? item->from->response : SV(""), !earlier, err);
}

static int put_both(struct pack *p, struct pending *v, const struct record *earlier,
                    struct pawl_err *err)
{
    char id[RECORD_ID];
    int64_t at = p->end;
    int rc = 0;
    record_id_new(&p->lake->ids, id);
    if (v->item->from && v->item->from->request.p)
        rc = put_request(p, v, id, err);
    v->own = (struct lake_span){.offset = p->end, .lead = p->end - at};
    memcpy(v->own.segment, p->name, SEGMENT_NAME);
    if (rc == 0)
        rc = put_answer(p, v, id, earlier, err);
    v->own.length = p->end - v->own.offset;
    return rc;
}

/* Everything of one item. Bytes that are there and that nothing was said about need no record. */
static int put_item(struct pack *p, struct pending *v, struct pawl_err *err)
{
    struct record earlier = {0};
    const struct lake_item *item = v->item;
    v->start = p->end;
    v->state = KEEP_WRITE;
    int rc = item->same ? find_same(p, v, &earlier, err) : find(p, v, &earlier, err);
    if (rc > 0)
        v->state = KEEP_FOUND;
    if (rc == 0)
        rc = put_both(p, v, NULL, err);
    else if (rc > 0 && item->from && item->from->response.p)
        rc = put_both(p, v, &earlier, err);
    str_done(&earlier.head);
    v->end = p->end;
    if (rc == 0 && v->state == KEEP_WRITE)
        remember(p, v);
    return rc < 0 ? rc : 0;
}

/* ---- the group ---- */

struct packing {
    struct pack *p;
    struct pending *v;
    size_t n;
};

static void fail_from(struct packing *g, size_t i, int rc, const struct pawl_err *e)
{
    for (; i < g->n; i++)
        if (g->v[i].state != KEEP_FAILED)
            pending_fail(&g->v[i], rc, e);
}

/* Take back item i. False: the segment is lost for writing. */
static bool take_back(struct packing *g, size_t i)
{
    struct pawl_err e = {0};
    forget_all(g->p);
    int rc = pack_cut(g->p, g->v[i].start, &e);
    return rc == 0;
}

/* The first item that is not all in the file. */
static size_t first_unwritten(const struct packing *g, size_t upto)
{
    for (size_t i = 0; i < upto; i++)
        if (g->v[i].state != KEEP_FAILED && g->v[i].end > g->p->written)
            return i;
    return upto;
}

/* The buffer's bytes must not be lost with the last of them. */
static int put_one(struct packing *g, size_t i, bool each, struct pawl_err *err)
{
    int rc = put_item(g->p, &g->v[i], err);
    while (++i < g->n && g->v[i].state == KEEP_FAILED)
        ;
    return rc == 0 && (each || i == g->n) ? pack_flush(g->p, err) : rc;
}

/* After a write that failed, one by one, each through to the file: what fits is kept. */
static void put_all(struct packing *g)
{
    bool each = false;
    for (size_t i = 0; i < g->n;) {
        struct pawl_err e = {0};
        int rc = g->v[i].state == KEEP_FAILED ? 0 : put_one(g, i, each, &e);
        if (rc == 0) {
            i++;
            continue;
        }
        bool again = g->p->failed && !each;
        if (again)
            i = first_unwritten(g, i);
        if (!take_back(g, i)) {
            fail_from(g, 0, rc, &e);
            return;
        }
        each = each || again;
        if (!again)
            pending_fail(&g->v[i++], rc, &e);
    }
}

static void answer(struct pending *v)
{
    struct lake_item *item = v->item;
    struct lake_span s[2] = {v->own};
    int n = 1;
    if (v->state == KEEP_FAILED)
        return;
    if (v->state == KEEP_FOUND) {
        s[0] = v->earlier;
        if (v->end > v->start)
            s[n++] = v->own;
    }
    item->codec = CODEC_NONE;
    item->stored = s[0].length;
    item->shared = v->state == KEEP_FOUND;
    lake_place(s, n, item->place);
}

static int keep_group(struct packing *g, struct lake *l, struct pawl_err *err)
{
    int rc = pack_open(l, &g->p, err);
    if (rc == 0)
        rc = lake_settle(l, err);
    if (rc < 0)
        return rc;
    put_all(g);
    if (g->p->fd < 0) /* it could not even be shortened: what is in it may be cut off */
        return err_set(err, PAWL_EIO, "segment %s of %s cannot be written", g->p->name, l->path);
    rc = pack_sync(g->p, err);
    if (rc < 0)
        forget_all(g->p);
    return rc;
}

int pack_keep(struct lake *l, struct lake_item *items, size_t n, struct pawl_err *err)
{
    AUTO_FREE struct pending *v = mem_zalloc(n, sizeof(*v));
    struct packing g = {.v = v, .n = n};
    struct pawl_err e = {0};
    pending_take(l, v, items, n);
    int rc = keep_group(&g, l, &e);
    for (size_t i = 0; i < n; i++) {
        if (rc < 0)
            pending_fail(&v[i], rc, &e);
        else
            answer(&v[i]);
        lake_spool_drop(v[i].spool);
    }
    if (rc < 0 && err)
        *err = e;
    return rc;
}

/* ---- copies ---- */

struct copying {
    struct pack *p;
    int rc;
    struct pawl_err *err;
};

static bool put_copy(void *arg, struct sv bytes)
{
    struct copying *c = arg;
    c->rc = pack_put(c->p, bytes, c->err);
    return c->rc == 0;
}

/* As it lies there: the ids of records stay, so what refers to them stays true. < 0: the new
 * segment's trouble; that of the old one is the answer. */
static int copy_one(struct pack *p, struct lake_move *m, struct pawl_err *err)
{
    struct copying c = {.p = p, .err = err};
    struct pawl_err e;
    int64_t start = p->end;
    m->rc = lake_span_sound(p->lake, &m->from, &e);
    if (m->rc == 0)
        m->rc = lake_span_read(p->lake, &m->from, true, put_copy, &c, &e);
    if (c.rc < 0)
        return c.rc;
    if (m->rc < 0)
        return pack_cut(p, start, err);
    m->to = m->from;
    memcpy(m->to.segment, p->name, SEGMENT_NAME);
    m->to.offset = start + m->from.lead;
    return 0;
}

int lake_copy(struct lake *l, struct lake_move *v, size_t n, struct pawl_err *err)
{
    struct pack *p;
    int rc = pack_open(l, &p, err);
    if (rc == 0)
        rc = lake_settle(l, err);
    if (rc < 0)
        return rc;
    int64_t start = p->end;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = copy_one(p, &v[i], err);
    if (rc == 0)
        return pack_sync(p, err);
    struct pawl_err e;
    if (p->fd >= 0 && pack_cut(p, start, &e) < 0)
        pack_abandon(p);
    return rc;
}
