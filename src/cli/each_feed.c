/* Adding the jobs of `pawl each`, in batches, on a thread of its own beside the worker.
 *
 * A job's key is a hash of the command, the folder, the arguments, and how often they came before:
 * so a line given twice runs twice, as in GNU parallel, and still is found again by the next run
 * whatever the order. Only inputs that occur twice cost memory, and a bit for each id. */
#include "each.h"

#include "hash.h"
#include "json.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum {
    BATCH_FIRST = 64, /* the first jobs start early */
    BATCH_MAX = 4000,
    BATCH_BYTES = 4 << 20,
    CHUNK_BITS = 1 << 15,
    SEEN = 8192, /* a power of two, twice a batch */
    BASE = 16,
    KEY_HEX = 32,
};

/* ---- ids this run has taken ---- */

struct ids {
    uint64_t **chunk;
    size_t n;
};

/* False when it was taken before. */
static bool ids_take(struct ids *s, job_id id)
{
    size_t at = (size_t)id.v / CHUNK_BITS, bit = (size_t)id.v % CHUNK_BITS;
    if (at >= s->n) {
        s->chunk = mem_realloc(s->chunk, at + 64, sizeof(*s->chunk));
        memset(s->chunk + s->n, 0, (at + 64 - s->n) * sizeof(*s->chunk));
        s->n = at + 64;
    }
    if (!s->chunk[at])
        s->chunk[at] = mem_zalloc(CHUNK_BITS / 64, sizeof(uint64_t));
    uint64_t *word = &s->chunk[at][bit / 64], mask = 1ull << (bit % 64);
    bool fresh = !(*word & mask);
    *word |= mask;
    return fresh;
}

static void ids_done(struct ids *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->chunk[i]);
    free(s->chunk);
}

/* ---- inputs met more than once ---- */

struct repeated {
    uint64_t hash; /* 0: empty */
    int64_t next;  /* how often it came so far */
};
struct repeats {
    struct repeated *v;
    size_t n, cap; /* cap: a power of two */
};

static struct repeated *repeats_slot(const struct repeats *r, uint64_t hash)
{
    size_t i = hash & (r->cap - 1);
    while (r->v[i].hash && r->v[i].hash != hash)
        i = (i + 1) & (r->cap - 1);
    return &r->v[i];
}

static void repeats_grow(struct repeats *r)
{
    struct repeats old = *r;
    r->cap = old.cap ? old.cap * 2 : 64;
    r->v = mem_zalloc(r->cap, sizeof(*r->v));
    for (size_t i = 0; i < old.cap; i++)
        if (old.v[i].hash)
            *repeats_slot(r, old.v[i].hash) = old.v[i];
    free(old.v);
}

static uint64_t hash_of(const unsigned char base[BASE])
{
    uint64_t hash;
    memcpy(&hash, base, sizeof(hash));
    return hash | 1;
}

/* The number of this occurrence, when it is known to be another one; `add`: now it is. */
static int64_t repeats_next(struct repeats *r, const unsigned char base[BASE], bool add)
{
    uint64_t hash = hash_of(base);
    if (r->n * 2 >= r->cap)
        repeats_grow(r);
    struct repeated *slot = repeats_slot(r, hash);
    if (!slot->hash && !add)
        return 0;
    if (!slot->hash) {
        *slot = (struct repeated){hash, 1};
        r->n++;
    }
    return slot->next++;
}

/* ---- a batch ---- */

struct item {
    unsigned char base[BASE];
    int64_t seq;
};
struct feeding {
    struct each_feed *f;
    struct store *store;
    struct arena arena;
    struct ids ids;
    struct repeats repeats;
    uint64_t seen[SEEN]; /* inputs of this batch, by hash; 0: empty */
    struct item item[BATCH_MAX];
    struct job_spec spec[BATCH_MAX], again[BATCH_MAX];
    struct add_result result[BATCH_MAX];
    size_t n, batch, bytes;
    struct str words, text;
};

static void put_bytes(struct jw *w, struct sv s)
{
    if (text_bad_utf8(s) == s.n) {
        jw_string(w, s);
        return;
    }
    AUTO_FREE char *hex = mem_zalloc(2 * s.n + 1, 1);
    hex_encode((const unsigned char *)s.p, s.n, hex);
    jw_object(w);
    jw_kstring(w, "hex", sv_make(hex, 2 * s.n));
    jw_end_object(w);
}

static void put_command(struct feeding *g, struct jw *w, const struct each_input *in)
{
    const struct each_template *t = g->f->t;
    str_clear(&g->words);
    size_t n = each_expand(t, in, &g->words);
    jw_name(w, "command");
    jw_array(w);
    if (t->shell) {
        jw_string(w, SV("/bin/sh"));
        jw_string(w, SV("-c"));
    }
    const char *p = g->words.p;
    for (size_t i = 0; i < n; i++, p += strlen(p) + 1)
        put_bytes(w, sv_of(p));
    jw_end_array(w);
}

static void put_note(struct feeding *g, struct jw *w, const struct each_input *in)
{
    str_clear(&g->words);
    for (size_t i = 0; i < in->n; i++) {
        if (i)
            str_addc(&g->words, ' ');
        str_add(&g->words, in->column[i]);
    }
    jw_name(w, "note");
    jw_object(w);
    jw_kstring(w, "each", sv_of(g->f->t->hash));
    jw_kint(w, "seq", in->seq);
    jw_name(w, "tag");
    put_bytes(w, g->words.len ? str_sv(&g->words) : SV(""));
    jw_end_object(w);
}

static struct sv make_payload(struct feeding *g, const struct each_input *in)
{
    str_clear(&g->text);
    struct jw w = jw_make(&g->text);
    jw_object(&w);
    put_command(g, &w, in);
    jw_kstring(&w, "cwd", sv_of(g->f->cwd));
    if (g->f->t->slot)
        jw_kstring(&w, "slot", sv_of(g->f->t->mark));
    put_note(g, &w, in);
    jw_end_object(&w);
    return sv_make(arena_strndup(&g->arena, g->text.p, g->text.len), g->text.len);
}

static void hash_input(struct feeding *g, const struct each_input *in, unsigned char out[BASE])
{
    unsigned char digest[SHA256_LEN];
    str_clear(&g->words);
    str_adds(&g->words, g->f->t->hash);
    for (size_t i = 0; i < in->n; i++) {
        str_addc(&g->words, '\0');
        str_add(&g->words, in->column[i]);
    }
    sha256(str_sv(&g->words), digest);
    memcpy(out, digest, BASE);
}

static struct sv make_key(struct feeding *g, const unsigned char base[BASE], int64_t occurrence)
{
    char *key = arena_zalloc(&g->arena, KEY_HEX + 24, 1);
    hex_encode(base, BASE, key);
    if (occurrence)
        snprintf(key + KEY_HEX, 24, "-%lld", (long long)occurrence + 1);
    return sv_of(key);
}

/* ---- adding ---- */

static bool to_be_repeated(enum job_state s)
{
    return s != JOB_DONE && s != JOB_RUNNING && s != JOB_BLOCKED;
}

/* One job of the batch is known to the store now: 'r' run it again, 'd' the input had come before,
 * 0 settled. */
static char judge(struct feeding *g, size_t i)
{
    struct each_feed *f = g->f;
    const struct add_result *r = &g->result[i];
    if (!ids_take(&g->ids, r->id))
        return 'd';
    if (r->outcome == ADD_CREATED)
        return 0;
    if (to_be_repeated(r->state))
        return 'r';
    if (r->state == JOB_DONE)
        f->before++;
    if (f->order)
        each_order_expect(f->order, g->item[i].seq, false);
    return 0;
}

static int add_round(struct feeding *g, size_t *left, struct pawl_err *err)
{
    size_t n_again = 0, n_left = 0;
    int rc = store_enqueue(g->store, g->spec, *left, DUPLICATE_SKIP, g->result, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < *left; i++) {
        char what = judge(g, i);
        if (what == 'r')
            g->again[n_again++] = g->spec[i];
        if (what != 'd')
            continue;
        g->item[n_left] = g->item[i];
        g->spec[n_left] = g->spec[i];
        g->spec[n_left].key =
            make_key(g, g->item[i].base, repeats_next(&g->repeats, g->item[i].base, true));
        n_left++;
    }
    *left = n_left;
    return n_again ? store_enqueue(g->store, g->again, n_again, DUPLICATE_REQUEUE, g->result, err)
                   : 0;
}

static int flush(void *arg, struct pawl_err *err)
{
    struct feeding *g = arg;
    int rc = 0;
    while (g->n && rc == 0)
        rc = add_round(g, &g->n, err);
    arena_reset(&g->arena);
    g->bytes = 0;
    memset(g->seen, 0, sizeof(g->seen));
    if (g->batch < BATCH_MAX)
        g->batch *= 2;
    if (g->batch > BATCH_MAX)
        g->batch = BATCH_MAX;
    return rc;
}

/* Found at once, an input that comes twice keeps its place in the order of ids. */
static bool seen_before(struct feeding *g, const unsigned char base[BASE])
{
    uint64_t hash = hash_of(base);
    size_t i = hash >> 32 & (SEEN - 1);
    while (g->seen[i] && g->seen[i] != hash)
        i = (i + 1) & (SEEN - 1);
    bool before = g->seen[i] != 0;
    g->seen[i] = hash;
    return before;
}

static int take(void *arg, const struct each_input *in, struct pawl_err *err)
{
    struct feeding *g = arg;
    struct each_feed *f = g->f;
    struct item *item = &g->item[g->n];
    item->seq = in->seq;
    hash_input(g, in, item->base);
    struct job_spec s = job_spec_default();
    s.queue = f->queue;
    int64_t occurrence = repeats_next(&g->repeats, item->base, seen_before(g, item->base));
    s.key = make_key(g, item->base, occurrence);
    s.payload = make_payload(g, in);
    s.max_attempts = f->max_attempts;
    s.timeout = f->timeout;
    g->bytes += s.payload.n;
    g->spec[g->n++] = s;
    if (f->order)
        each_order_expect(f->order, in->seq, true);
    f->total++;
    return g->n >= g->batch || g->bytes > BATCH_BYTES ? flush(g, err) : 0;
}

static int feed(struct feeding *g, struct pawl_err *err)
{
    struct each_feed *f = g->f;
    int rc = f->c->app->open_store(f->c->config, STORE_CREATE, &g->store, err);
    if (rc == 0)
        rc = each_inputs_walk(f->in, take, flush, g, err);
    if (rc == 0)
        rc = flush(g, err);
    store_close(g->store);
    return rc;
}

static void *feed_thread(void *arg)
{
    struct each_feed *f = arg;
    struct feeding *g = mem_zalloc(1, sizeof(*g));
    g->f = f;
    g->batch = BATCH_FIRST;
    g->words = g->text = STR_INIT(PAYLOAD_MAX_BYTES);
    arena_init(&g->arena);
    if (feed(g, &f->err) == 0) {
        f->err.code = 0;
        f->counted = true;
    }
    arena_done(&g->arena);
    ids_done(&g->ids);
    free(g->repeats.v);
    str_done(&g->words);
    str_done(&g->text);
    free(g);
    f->over = true;
    loop_wake(f->loop);
    return NULL;
}

int each_feed_start(struct each_feed *f, struct loop *loop, struct pawl_err *err)
{
    f->loop = loop;
    if (pipe2(f->stop, O_CLOEXEC) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot make a pipe");
    f->in->stop_fd = f->stop[0];
    int rc = pthread_create(&f->thread, NULL, feed_thread, f);
    if (rc)
        return err_errno(err, PAWL_EIO, rc, "cannot start a thread");
    f->started = true;
    return 0;
}

void each_feed_stop(struct each_feed *f)
{
    if (!f->started)
        return;
    close(f->stop[1]); /* the other end becomes readable */
    pthread_join(f->thread, NULL);
    close(f->stop[0]);
    f->started = false;
}

/* ---- reading back ---- */

static struct sv bytes_at(const struct json *doc, uint32_t at, struct arena *a)
{
    if (json_type(doc, at) == JSON_STRING)
        return json_string(doc, at, a);
    struct sv hex = json_string(doc, json_member(doc, at, SV("hex")), a);
    char *out = arena_zalloc(a, hex.n / 2 + 1, 1);
    for (size_t i = 0; i + 1 < hex.n; i += 2) {
        unsigned byte = 0;
        sscanf(hex.p + i, "%2x", &byte);
        out[i / 2] = (char)byte;
    }
    return sv_make(out, hex.n / 2);
}

static struct sv read_words(const struct json *doc, struct arena *a)
{
    AUTO_STR struct str s = STR_INIT(PAYLOAD_MAX_BYTES);
    uint32_t list = json_member(doc, 0, SV("command"));
    for (uint32_t k = json_first(doc, list); k != json_end(doc, list); k = json_after(doc, k)) {
        str_add(&s, bytes_at(doc, k, a));
        str_addc(&s, '\0');
    }
    return sv_make(arena_strndup(a, s.p, s.len), s.len);
}

bool each_note_read(struct sv payload, const char *hash, struct arena *a, struct json *doc,
                    struct each_note *out)
{
    struct pawl_err err;
    if (json_parse(doc, payload, &err) < 0 || json_type(doc, 0) != JSON_OBJECT)
        return false;
    uint32_t note = json_member(doc, 0, SV("note"));
    if (!note || json_type(doc, note) != JSON_OBJECT)
        return false;
    uint32_t each = json_member(doc, note, SV("each")), seq = json_member(doc, note, SV("seq"));
    uint32_t tag = json_member(doc, note, SV("tag"));
    if (!each || !seq || !tag || !sv_eq(json_string(doc, each, a), sv_of(hash)) ||
        json_i64(doc, seq, 1, INT64_MAX / 2, &out->seq) < 0)
        return false;
    out->tag = bytes_at(doc, tag, a);
    out->words = read_words(doc, a);
    return true;
}
