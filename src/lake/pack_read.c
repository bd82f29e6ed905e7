/* Records read back out of segments, and judged. The payload is the end of a record's block, as
 * long as its row says; what is before it is not the lake's business. */
#include "pack.h"

#include "fd.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>

enum { OPEN_SEGMENTS = 16, PIECE = 64 << 10 };

struct opened {
    char name[SEGMENT_NAME];
    int fd;
    int64_t used;
    int64_t from, to; /* of it, what was checked and is still in memory */
};

/* Segments that were read lately stay open: the kernel reads ahead in them, and nothing has to be
 * looked up. */
struct packed {
    struct opened v[OPEN_SEGMENTS];
    size_t n;
    int64_t turn;
    struct inflater *inflater;
    struct sha256_state hash;
    char piece[PIECE];
};

static struct packed *packed_of(struct lake *l)
{
    if (!l->packed) {
        l->packed = mem_zalloc(1, sizeof(*l->packed));
        l->packed->inflater = inflater_new(INFLATE_GZIP);
    }
    return l->packed;
}

static void forget(const struct lake *l, struct opened *o)
{
    if (o->to > o->from)
        l->disk->forget(o->fd, o->from, o->to - o->from);
    o->from = o->to = 0;
}

/* Whoever checks reads all of a lake, once: it should not push everything else out of memory. */
static void checked(const struct lake *l, struct opened *o, int64_t from, int64_t to)
{
    if (o->to - o->from >= FORGET || from < o->from || from > o->to + FORGET)
        forget(l, o);
    if (o->from == o->to)
        o->from = from;
    o->to = to;
}

static void close_segment(const struct lake *l, struct opened *o)
{
    forget(l, o);
    close(o->fd);
}

void packed_free(const struct lake *l)
{
    struct packed *p = l->packed;
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        close_segment(l, &p->v[i]);
    inflater_free(p->inflater);
    sha256_done(&p->hash);
    free(p);
}

static int open_file(struct lake *l, const char *segment, int *out, struct pawl_err *err)
{
    char file[SEGMENT_FILE];
    struct stat st;
    int rc = lake_segments(l, false, err);
    if (rc < 0)
        return rc;
    segment_file(segment, file);
    AUTO_FD int fd = l->disk->open(l->segments, file, O_RDONLY);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, PAWL_ENOTFOUND, "segment %s is not in %s", segment, l->path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return disk_error(err, errno, "cannot open segment %s of %s", segment, l->path);
    if (!S_ISREG(st.st_mode))
        return disk_not_file(err, &st, file);
    *out = TAKE_FD(fd);
    return 0;
}

static struct opened *find_opened(struct packed *p, const char *segment)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->v[i].name, segment))
            return &p->v[i];
    return NULL;
}

/* A free place, or that of the one that was not used for longest. */
static struct opened *place_for(const struct lake *l, struct packed *p)
{
    struct opened *oldest = &p->v[0];
    if (p->n < OPEN_SEGMENTS)
        return &p->v[p->n++];
    for (size_t i = 1; i < p->n; i++)
        if (p->v[i].used < oldest->used)
            oldest = &p->v[i];
    close_segment(l, oldest);
    return oldest;
}

static int open_segment(struct lake *l, const char *segment, int *out, struct pawl_err *err)
{
    struct packed *p = packed_of(l);
    struct opened *o = find_opened(p, segment);
    if (!o) {
        int fd = -1, rc = open_file(l, segment, &fd, err);
        if (rc < 0)
            return rc;
        o = place_for(l, p);
        *o = (struct opened){.fd = fd};
        memcpy(o->name, segment, SEGMENT_NAME);
    }
    o->used = ++p->turn;
    *out = o->fd;
    return 0;
}

/* ---- stretches ---- */

/* The bytes from..to of a file, piece by piece. `each`: < 0 is an error, > 0 enough. */
static int read_bytes(struct lake *l, int fd, const char *segment, int64_t from, int64_t to,
                      int (*each)(void *arg, struct sv bytes, struct pawl_err *err), void *arg,
                      struct pawl_err *err)
{
    char *buffer = lake_buffer(l);
    while (from < to) {
        size_t want = to - from < COPY_BUFFER ? (size_t)(to - from) : COPY_BUFFER;
        ssize_t n = l->disk->read(fd, buffer, want, from);
        if (n < 0)
            return disk_error(err, errno, "cannot read segment %s", segment);
        if (n == 0)
            return err_set(err, PAWL_ENOTFOUND, "segment %s ends before it", segment);
        int rc = each(arg, sv_make(buffer, (size_t)n), err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
        from += n;
    }
    return 0;
}

struct passing {
    bool (*each)(void *arg, struct sv bytes);
    void *arg;
};

static int pass_on(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct passing *p = arg;
    (void)err;
    return p->each(p->arg, bytes) ? 0 : 1;
}

int lake_span_read(struct lake *l, const struct lake_span *s, bool lead,
                   bool (*each)(void *arg, struct sv bytes), void *arg, struct pawl_err *err)
{
    struct passing p = {each, arg};
    int fd, rc = open_segment(l, s->segment, &fd, err);
    if (rc < 0)
        return rc;
    return read_bytes(l, fd, s->segment, s->offset - (lead ? s->lead : 0), s->offset + s->length,
                      pass_on, &p, err);
}

/* ---- members ---- */

struct member {
    struct packed *p;
    bool many; /* others may follow */
    bool over;
    bool enough;   /* `each` has stopped it */
    int64_t taken; /* of the file */
    int (*each)(void *arg, struct sv bytes, struct pawl_err *err);
    void *arg;
};

static int broken(struct pawl_err *err, const char *why)
{
    return err_set(err, PAWL_ECORRUPT, "%s", why);
}

/* Members that are stored, at the front of what was read: nothing has to be copied. 1: enough. */
static int pass_stored(struct member *m, struct sv *bytes, struct pawl_err *err)
{
    int rc = 0;
    for (size_t n; rc == 0 && bytes->n && (m->many || !m->over) && (n = gzip_stored(*bytes));) {
        struct sv block, member = sv_make(bytes->p, n);
        while (rc == 0 && m->each && (block = gzip_stored_next(&member)).p)
            rc = block.n ? m->each(m->arg, block, err) : 0;
        *bytes = sv_make(bytes->p + n, bytes->n - n);
        m->taken += (int64_t)n;
        m->over = true;
    }
    m->enough = rc > 0;
    return rc;
}

static int inflate_piece(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct member *m = arg;
    size_t made = 0;
    int rc = m->over || !m->taken ? pass_stored(m, &bytes, err) : 0;
    if (rc != 0 || !bytes.n)
        return rc;
    do {
        size_t before = bytes.n;
        if (m->over && !m->many)
            return broken(err, "something follows its end");
        if (m->over)
            inflater_reset(m->p->inflater);
        enum inflate_end e = inflater_run(m->p->inflater, &bytes, m->p->piece, PIECE, &made);
        m->taken += (int64_t)(before - bytes.n);
        m->over = e == INFLATE_OVER;
        if (e == INFLATE_BAD)
            return broken(err, "it cannot be decoded");
        rc = made && m->each ? m->each(m->arg, sv_make(m->p->piece, made), err) : 0;
        m->enough = rc > 0;
        if (rc != 0)
            return rc;
    } while (bytes.n || (made == PIECE && !m->over));
    return 0;
}

/* Members of gzip that fill from..to and nothing else. */
static int read_members(struct lake *l, const struct lake_span *s, int64_t from, struct member *m,
                        struct pawl_err *err)
{
    int fd, rc = open_segment(l, s->segment, &fd, err);
    if (rc < 0)
        return rc;
    m->p = packed_of(l);
    inflater_reset(m->p->inflater);
    rc = read_bytes(l, fd, s->segment, from, s->offset + s->length, inflate_piece, m, err);
    return rc == 0 && !m->over && !m->enough ? broken(err, "its end is missing") : rc;
}

int lake_span_sound(struct lake *l, const struct lake_span *s, struct pawl_err *err)
{
    struct member m = {.many = true};
    return disk_scope(err, read_members(l, s, s->offset - s->lead, &m, err), false);
}

/* One member, wherever it ends; `head` gets the beginning of what is inside. */
struct one {
    struct packed *p;
    struct str *head;
    int64_t taken;
    bool over;
};

static int one_piece(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct one *m = arg;
    size_t made;
    enum inflate_end e;
    do {
        size_t before = bytes.n;
        e = inflater_run(m->p->inflater, &bytes, m->p->piece, PIECE, &made);
        m->taken += (int64_t)(before - bytes.n);
        if (m->head)
            str_add(m->head, sv_make(m->p->piece, made));
    } while (e == INFLATE_MORE && (bytes.n || made == PIECE));
    m->over = e == INFLATE_OVER;
    if (e == INFLATE_BAD)
        return broken(err, "it cannot be decoded");
    return m->over ? 1 : 0;
}

int64_t pack_member(struct lake *l, int fd, int64_t at, int64_t to, struct str *head)
{
    struct one m = {.p = packed_of(l), .head = head};
    struct pawl_err e;
    inflater_reset(m.p->inflater);
    int rc = read_bytes(l, fd, "", at, to, one_piece, &m, &e);
    return rc == 0 && m.over ? m.taken : 0;
}

int64_t pack_first(struct lake *l, int fd)
{
    return pack_member(l, fd, 0, RECORD_HEAD, NULL);
}

/* ---- what has no row ---- */

/* The request that was just before, if it belongs to this record. */
static int64_t lead_of(struct sv head, int64_t at, int64_t request, const struct str *of)
{
    bool mine = request >= 0 && sv_eq(warc_field(head, "WARC-Record-ID"), str_sv(of));
    return mine ? at - request : 0;
}

int lake_notes(struct lake *l, const char segment[SEGMENT_NAME], int64_t from, int64_t to,
               void (*each)(void *arg, const struct lake_span *s, struct wall at), void *arg,
               struct pawl_err *err)
{
    AUTO_STR struct str head = STR_INIT(RECORD_ROOM), of = STR_INIT(STR_LINE);
    int64_t request = -1, n;
    int fd, rc = open_segment(l, segment, &fd, err);
    if (rc < 0)
        return rc;
    for (; from < to; from += n) {
        str_clear(&head);
        head.overflow = false;
        n = pack_member(l, fd, from, to, &head);
        if (!n)
            return 0;
        struct sv text = str_sv(&head), type = warc_field(text, "WARC-Type");
        struct wall at = {0};
        struct lake_span s = {.offset = from, .length = n};
        s.lead = lead_of(text, from, request, &of);
        memcpy(s.segment, segment, SEGMENT_NAME);
        if (sv_eq(type, SV("revisit")) && sv_eq(warc_field(text, "WARC-Profile"), SV(UNCHANGED)) &&
            wall_parse(warc_field(text, "WARC-Date"), clock_wall(), &at, err) == 0)
            each(arg, &s, at);
        request = sv_eq(type, SV("request")) ? from : -1;
        str_clear(&of);
        str_add(&of, warc_field(text, "WARC-Concurrent-To"));
    }
    return 0;
}

/* ---- records ---- */

static void record_done(struct record *r)
{
    str_done(&r->head);
}

struct parsing {
    struct record *out;
    int64_t payload, at; /* wanted from the end of the block; how far in it */
    int tail;            /* bytes of the line ends after the block */
    bool (*each)(void *arg, struct sv bytes);
    void *arg;
};

/* The end of the head, if it is there now. */
static int parse_head(struct parsing *p, struct sv *bytes, struct pawl_err *err)
{
    struct str *head = &p->out->head;
    size_t before = head->len, from = before < 3 ? 0 : before - 3;
    const char *whole = before ? NULL : memmem(bytes->p, bytes->n, "\r\n\r\n", 4);
    str_add(head, whole ? sv_make(bytes->p, (size_t)(whole - bytes->p) + 4) : *bytes);
    const char *end =
        head->len < 4 ? NULL : memmem(head->p + from, head->len - from, "\r\n\r\n", 4);
    if (!end && (head->overflow || head->len > RECORD_ROOM))
        return broken(err, "it is no record of WARC");
    if (!end) {
        *bytes = SV_NONE;
        return 0;
    }
    size_t n = (size_t)(end - head->p) + 4;
    *bytes = sv_make(bytes->p + (n - before), bytes->n - (n - before));
    head->len = n;
    head->p[n] = '\0';
    if (!sv_starts(str_sv(head), SV("WARC/1.")) ||
        sv_to_i64(warc_field(str_sv(head), "Content-Length"), 0, INT64_MAX / 4, &p->out->block) < 0)
        return broken(err, "it is no record of WARC");
    return p->out->block < p->payload ? broken(err, "it holds fewer bytes than were kept") : 0;
}

static int parse_piece(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct parsing *p = arg;
    if (p->out->block < 0) {
        int rc = parse_head(p, &bytes, err);
        if (rc < 0 || p->out->block < 0)
            return rc;
    }
    int64_t left = p->out->block - p->at, skip = p->out->block - p->payload - p->at;
    struct sv block = sv_make(bytes.p, (int64_t)bytes.n < left ? bytes.n : (size_t)left);
    bytes = sv_make(bytes.p + block.n, bytes.n - block.n);
    p->at += (int64_t)block.n;
    if (skip > 0) {
        size_t n = skip < (int64_t)block.n ? (size_t)skip : block.n;
        block = sv_make(block.p + n, block.n - n);
    }
    if (block.n && p->each && !p->each(p->arg, block))
        return 1;
    for (size_t i = 0; i < bytes.n; i++, p->tail++)
        if (p->tail >= 4 || bytes.p[i] != "\r\n\r\n"[p->tail])
            return broken(err, "it does not end as a record does");
    return 0;
}

int pack_record(struct lake *l, const struct lake_span *s, int64_t payload,
                bool (*each)(void *arg, struct sv bytes), void *arg, struct record *out,
                struct pawl_err *err)
{
    struct parsing p = {.out = out, .payload = payload, .each = each, .arg = arg};
    struct member m = {.each = parse_piece, .arg = &p};
    out->block = -1;
    out->head = STR_INIT(1 << 20);
    int rc = read_members(l, s, s->offset, &m, err);
    if (rc == 0 && !m.enough && (out->block < 0 || p.at < out->block || p.tail != 4))
        rc = broken(err, "it is cut short");
    return rc;
}

static int head_piece(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct parsing *p = arg;
    int rc = parse_head(p, &bytes, err);
    return rc < 0 ? rc : p->out->block >= 0;
}

int lake_span_uri(struct lake *l, const struct lake_span *s, struct str *out, struct pawl_err *err)
{
    AUTO(record_done) struct record r = {.block = -1, .head = STR_INIT(1 << 20)};
    struct parsing p = {.out = &r};
    struct member m = {.each = head_piece, .arg = &p};
    struct lake_span first = *s; /* a head is never longer */
    first.length = s->length < RECORD_ROOM ? s->length : RECORD_ROOM;
    int rc = read_members(l, &first, first.offset, &m, err);
    if (rc < 0)
        return disk_scope(err, rc, false);
    struct sv uri = r.block < 0 ? SV_NONE : warc_field(str_sv(&r.head), "WARC-Target-URI");
    if (!uri.n)
        return broken(err, "it does not say what it is of");
    str_add(out, uri);
    return 0;
}

/* ---- artifacts ---- */

static int spans_of(const struct artifact *a, struct lake_span out[2], struct pawl_err *err)
{
    int n = a->codec == CODEC_NONE ? lake_spans(a->place, out) : 0;
    if (n)
        return n;
    return err_set(err, PAWL_EINPUT, "\"" SV_FMT "\" is no place of this lake", SV_ARG(a->place));
}

int pack_read(struct lake *l, const struct artifact *a, bool (*each)(void *arg, struct sv bytes),
              void *arg, struct pawl_err *err)
{
    struct lake_span s[2];
    struct record r;
    int n = spans_of(a, s, err);
    if (n < 0)
        return n;
    int rc = pack_record(l, &s[0], a->size, each, arg, &r, err);
    str_done(&r.head);
    return rc < 0 ? disk_scope(err, err_wrap(err, "record " SV_FMT, SV_ARG(a->place)), false) : rc;
}

static bool hash_piece(void *arg, struct sv bytes)
{
    sha256_update(arg, bytes);
    return true;
}

static void span_checked(const struct lake *l, const struct lake_span *s)
{
    struct opened *o = find_opened(l->packed, s->segment);
    if (o)
        checked(l, o, s->offset - s->lead, s->offset + s->length);
}

static int check_spans(struct lake *l, const struct artifact *a, struct sha256_state *h,
                       struct pawl_err *err)
{
    struct lake_span s[2];
    struct record r;
    int n = spans_of(a, s, err);
    if (n < 0)
        return n;
    int rc = pack_record(l, &s[0], a->size, hash_piece, h, &r, err);
    str_done(&r.head);
    struct lake_span lead = {.offset = s[0].offset - s[0].lead, .length = s[0].lead};
    memcpy(lead.segment, s[0].segment, SEGMENT_NAME);
    if (rc == 0 && s[0].lead)
        rc = lake_span_sound(l, &lead, err);
    if (rc == 0 && n > 1)
        rc = lake_span_sound(l, &s[1], err);
    for (int i = 0; i < n; i++)
        span_checked(l, &s[i]);
    return rc;
}

int pack_same(struct lake *l, const struct lake_span *s, int64_t size,
              const unsigned char sha256[SHA256_LEN], struct record *out, struct pawl_err *err)
{
    struct sha256_state *h = &packed_of(l)->hash;
    unsigned char sum[SHA256_LEN];
    sha256_init(h);
    int rc = pack_record(l, s, size, hash_piece, h, out, err);
    sha256_final(h, sum);
    if (rc == 0 && memcmp(sum, sha256, SHA256_LEN) != 0)
        rc = broken(err, "its hash differs");
    return rc;
}

int pack_check(struct lake *l, const struct artifact *a, enum lake_verdict *out, const char **why,
               struct pawl_err *err)
{
    struct sha256_state *h = &packed_of(l)->hash;
    unsigned char sum[SHA256_LEN];
    struct pawl_err e = {0};
    sha256_init(h);
    int rc = check_spans(l, a, h, &e);
    sha256_final(h, sum);
    *why = "";
    *out = LAKE_DAMAGED;
    if (rc == PAWL_ENOTFOUND) {
        *out = LAKE_MISSING;
        *why = "its segment is not there, or ends before it";
    } else if (rc == PAWL_EINPUT) {
        *why = "its place is none of this lake's";
    } else if (rc == PAWL_ECORRUPT) {
        *why = "its record is damaged";
    } else if (rc == PAWL_EIO && (e.sys_errno == EIO || !e.sys_errno)) {
        *why = e.sys_errno ? "the disk cannot read it" : "its segment is not a regular file";
    } else if (rc < 0) {
        return check_unread(rc, &e, out, why, err);
    } else if (memcmp(sum, a->sha256, SHA256_LEN) != 0) {
        *why = "its hash differs";
    } else {
        *out = LAKE_GOOD;
    }
    return 0;
}
