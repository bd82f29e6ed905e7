#include "keep_thread.h"

#include "asks.h"
#include "threads.h"
#include "worker_internal.h"
#include <sys/statvfs.h>

enum {
    SINK_MEMORY = 256 << 10, /* larger bodies go to a temporary file as they come */
    KEEP_MAX = 1024,         /* of one group */
    GATHER_MAX = 256,        /* a group of so many is large enough */
    GATHER_SHARE = 4,        /* as is a fourth of what runs: the others have not come so far */
    SPARE_MAX = MEM_SPARES(256),
    SPARE_BODY = 32 << 10, /* larger buffers do not stay with them */
};
#define OPEN_AGAIN DUR_S(1)
#define GATHER_FOR DUR_MS(3) /* no longer: the first of a group waits */

struct sink {
    struct worker *w;
    struct kind *kind; /* of the run; NULL: a trial, */
    int64_t trial;     /* of so many bytes */
    struct str body;
    int64_t size;             /* of what was written to it */
    struct lake_spool *spool; /* NULL: still in memory */
    char *file;               /* keep_file(); owned */
    struct artifact same;     /* keep_confirm(): its place is owned; p NULL: not this */
    char *name, *type;        /* owned; type NULL: unknown */
    job_id job;
    struct exchange from; /* its texts are in `about` */
    struct str about;
    kept_fn *done;
    void *arg;
    struct lake_item item;
    struct sink *next;
};

/* ---- sinks that serve again ---- */

static struct sink *take_spare(struct keeping *k)
{
    struct sink *s = k->spare;
    k->spare = s->next;
    k->n_spare--;
    *s = (struct sink){.body = s->body, .about = s->about};
    str_clear(&s->body);
    str_clear(&s->about);
    return s;
}

static void give_spare(struct keeping *k, struct sink *s)
{
    if (k->n_spare == SPARE_MAX || s->body.cap > SPARE_BODY || s->about.cap > SPARE_BODY) {
        str_done(&s->body);
        str_done(&s->about);
        free(s);
        return;
    }
    s->next = k->spare;
    k->spare = s;
    k->n_spare++;
}

static void free_spares(struct keeping *k)
{
    for (struct sink *s; (s = k->spare);) {
        k->spare = s->next;
        str_done(&s->body);
        str_done(&s->about);
        free(s);
    }
}

/* ---- the lake ---- */

bool keep_packs(const struct worker *w)
{
    const char *mode = w->o->config->lake_mode;
    return mode && !strcmp(mode, "pack");
}

static int open_handle(const struct keeping *k, struct lake **out, struct pawl_err *err)
{
    const struct config *c = k->w->o->config;
    const struct lake_options o = {.path = c->lake_path,
                                   .create = true,
                                   .owner = k->w->store_id,
                                   .types = (const char *const *)c->compress_types.v,
                                   .n_types = c->compress_types.n,
                                   .level = (int)c->lake_compress_level,
                                   .mode = keep_packs(k->w) ? LAKE_PACK : LAKE_FILES,
                                   .segment_bytes = c->lake_segment_size,
                                   .segment_age = c->lake_segment_age};
    int rc = lake_open(&o, out, err);
    return rc < 0 ? err->code = PAWL_EFULL : 0; /* whatever is wrong, it is not the job */
}

static int open_lake(struct keeping *k, struct pawl_err *err)
{
    struct boot now = clock_boot();
    if (k->lake)
        return 0;
    if (!k->opening.us || now.us - k->opening.us > OPEN_AGAIN.us) {
        k->opening = now;
        if (open_handle(k, &k->lake, &k->open_err) == 0)
            return 0;
    }
    *err = k->open_err;
    return err->code;
}

/* Where the lake will be, or the nearest folder above that is there: nothing is made for a look. */
static int64_t free_beside(const char *path)
{
    struct statvfs fs;
    AUTO_FREE char *p = mem_strdup(path);
    while (statvfs(*p ? p : ".", &fs) < 0) {
        char *slash = strrchr(p, '/');
        if (!*p)
            return INT64_MAX;
        *(slash && slash > p ? slash : slash ? slash + 1 : p) = '\0';
    }
    return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

int keep_free(struct worker *w, int64_t *out, struct pawl_err *err)
{
    int rc = w->keep.opening.us ? open_lake(&w->keep, err) : 0;
    if (rc < 0)
        return rc;
    if (w->keep.lake)
        return lake_free_bytes(w->keep.lake, out, err);
    *out = free_beside(w->o->config->lake_path);
    return 0;
}

void keep_anew(struct worker *w)
{
    struct keeping *k = &w->keep;
    if (k->sinks) /* the threads have none either, so they rest */
        return;
    for (size_t i = 0; i < KEEP_THREADS; i++) {
        lake_close(k->threads[i].lake);
        k->threads[i].lake = NULL;
    }
    lake_close(k->lake);
    k->lake = NULL;
    k->opening.us = 0;
}

/* ---- the thread ---- */

static size_t take_some(struct keeping *k, struct sink **v)
{
    size_t n = 0;
    pthread_mutex_lock(&k->lock);
    while (!k->in && !k->quit)
        pthread_cond_wait(&k->cond, &k->lock);
    while (k->in && n < KEEP_MAX) {
        v[n++] = k->in;
        k->in = k->in->next;
    }
    if (!k->in)
        k->in_last = &k->in;
    pthread_mutex_unlock(&k->lock);
    return n;
}

static void give_back(struct keeping *k, struct sink **v, size_t n)
{
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < n; i++) {
        v[i]->next = k->out;
        k->out = v[i];
    }
    pthread_mutex_unlock(&k->lock);
    loop_wake(k->w->loop);
}

static void keep_group(struct keep_thread *t, struct sink **v, struct lake_item *items, size_t n)
{
    struct pawl_err err = {0};
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct lake_item){.type = sv_of(v[i]->type), .from = &v[i]->from};
        if (v[i]->same.place.p)
            items[i].same = &v[i]->same;
        else if (v[i]->file)
            items[i].file = v[i]->file;
        else if (v[i]->spool)
            items[i].spool = v[i]->spool;
        else
            items[i].body = sv_make(str_cstr(&v[i]->body), v[i]->body.len);
    }
    int rc = lake_keep(t->lake, items, n, &err);
    for (size_t i = 0; i < n; i++) {
        v[i]->spool = NULL;
        v[i]->item = items[i];
        if (rc < 0) {
            v[i]->item.rc = rc;
            v[i]->item.err = err;
        }
    }
    give_back(t->all, v, n);
}

/* Those among the n that are trials; returns how many others there are. */
static size_t answer_trials(struct keep_thread *t, struct sink **v, size_t n)
{
    size_t others = 0;
    for (size_t i = 0; i < n; i++) {
        struct sink *s = v[i];
        if (!s->trial) {
            v[others++] = s;
            continue;
        }
        s->item.rc = lake_try(t->lake, s->trial, &s->item.err);
        give_back(t->all, &s, 1);
    }
    return others;
}

static void *keep_main(void *arg)
{
    struct keep_thread *t = arg;
    AUTO_FREE struct sink **v = mem_zalloc(KEEP_MAX, sizeof(struct sink *));
    AUTO_FREE struct lake_item *items = mem_zalloc(KEEP_MAX, sizeof(*items));
    for (size_t n; (n = take_some(t->all, v));)
        if ((n = answer_trials(t, v, n)))
            keep_group(t, v, items, n);
    return NULL;
}

static void on_gathered(struct timer *t);

void keep_init(struct worker *w)
{
    w->keep.w = w;
    w->keep.in_last = &w->keep.in;
    w->keep.gathered_last = &w->keep.gathered;
    w->keep.gather.on_time = on_gathered;
    threads_init(&w->keep.lock, &w->keep.cond);
}

void keep_done(struct worker *w)
{
    struct keeping *k = &w->keep;
    pthread_mutex_lock(&k->lock);
    k->quit = true;
    pthread_cond_broadcast(&k->cond);
    pthread_mutex_unlock(&k->lock);
    for (size_t i = 0; i < KEEP_THREADS; i++) {
        if (k->threads[i].started)
            pthread_join(k->threads[i].thread, NULL);
        lake_close(k->threads[i].lake);
    }
    for (struct sink *s = k->out, *next; s; s = next) { /* a trial whose answer nobody needs */
        next = s->next;
        keep_sink_drop(s);
    }
    free_spares(k);
    lake_close(k->lake);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->cond);
}

/* ---- sinks ---- */

static struct sink *new_sink(struct worker *w)
{
    struct sink *s = w->keep.spare ? take_spare(&w->keep) : mem_zalloc(1, sizeof(*s));
    s->w = w;
    s->body.max = SINK_MEMORY;
    s->about.max = STR_OUTPUT;
    w->keep.sinks++;
    return s;
}

static struct sink *make(struct run *r)
{
    struct attempt *a = OWNER(r, struct attempt, run);
    struct sink *s = new_sink(a->w);
    s->kind = a->kind;
    s->job = r->job->id;
    return s;
}

struct sink *keep_sink_open(struct run *r)
{
    return make(r);
}

static int spool(struct sink *s, struct pawl_err *err)
{
    int rc = open_lake(&s->w->keep, err);
    if (rc == 0)
        rc = lake_spool_open(s->w->keep.lake, &s->spool, err);
    if (rc == 0 && s->body.len)
        rc = lake_spool_write(s->spool, str_sv(&s->body), err);
    if (rc == 0)
        str_done(&s->body);
    return rc;
}

/* Of bytes and files that cannot be kept wherever they come from the lake knows: the code says so.
 * Everything else would meet the next job as well, so no job is to blame. */
static int refused(struct sink *s, struct pawl_err *err)
{
    if (err->code != PAWL_EFULL && err->code != PAWL_EIO)
        return err->code;
    lake_hold_refused(s->w, s->size, err);
    return err->code = PAWL_EFULL;
}

int keep_sink_write(struct sink *s, struct sv bytes, struct pawl_err *err)
{
    s->size += (int64_t)bytes.n;
    if (!s->spool && s->body.len + bytes.n <= SINK_MEMORY) {
        str_add(&s->body, bytes);
        return 0;
    }
    int rc = s->spool ? 0 : spool(s, err);
    if (rc == 0)
        rc = lake_spool_write(s->spool, bytes, err);
    return rc < 0 ? refused(s, err) : 0;
}

void keep_sink_drop(struct sink *s)
{
    if (!s)
        return;
    s->w->keep.sinks--;
    lake_spool_drop(s->spool);
    free(s->file);
    free((char *)(uintptr_t)s->same.place.p);
    free(s->name);
    free(s->type);
    give_spare(&s->w->keep, s);
}

static int start_thread(struct keeping *k, struct keep_thread *t, struct pawl_err *err)
{
    t->all = k;
    int rc = t->lake ? 0 : open_handle(k, &t->lake, err);
    if (rc == 0 && !t->started) {
        rc = threads_start(&t->thread, keep_main, t, err);
        t->started = rc == 0;
    }
    return rc;
}

/* The second one only when the first is behind: `away` are others than the n of this group. One
 * that runs may take the group, so it needs its handle. */
static int start(struct keeping *k, size_t n, struct pawl_err *err)
{
    int rc = open_lake(k, err);
    if (rc == 0)
        rc = start_thread(k, &k->threads[0], err);
    for (size_t i = 1; rc == 0 && i < KEEP_THREADS; i++)
        if (k->threads[i].started || k->away > n)
            rc = start_thread(k, &k->threads[i], err);
    return rc;
}

/* One buffer for all of it; views follow when it no longer moves. */
void keep_about(struct sink *s, const struct exchange *x)
{
    const struct sv texts[] = {x->uri, x->request, x->response, x->address};
    struct sv *const out[] = {&s->from.uri, &s->from.request, &s->from.response, &s->from.address};
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        str_add(&s->about, texts[i]);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *out[i] = texts[i].p && !s->about.overflow ? sv_make(str_cstr(&s->about) + at, texts[i].n)
                                                   : SV_NONE;
        at += texts[i].n;
    }
    s->from.at = x->at;
}

/* What came from nowhere is named by who made it. */
static void name_origin(struct sink *s)
{
    if (s->from.uri.p || !keep_packs(s->w))
        return;
    str_addf(&s->about, "pawl:job/%lld/%s", (long long)s->job.v, s->name);
    s->from.uri = str_sv(&s->about);
}

/* ---- groups ---- */

/* Their answers come later all the same. */
static void refuse(struct keeping *k, struct sink *first, const struct pawl_err *err)
{
    for (struct sink *s = first, *next; s; s = next) {
        next = s->next;
        s->item.rc = err->code;
        s->item.err = *err;
        give_back(k, &s, 1);
    }
}

static void give(struct keeping *k, struct sink *first, struct sink **last)
{
    pthread_mutex_lock(&k->lock);
    *k->in_last = first;
    k->in_last = last;
    pthread_cond_signal(&k->cond);
    pthread_mutex_unlock(&k->lock);
}

/* What has gathered goes to one of the threads; or back at once, with what is wrong. */
static void hand_over(struct keeping *k)
{
    struct pawl_err err = {0};
    struct sink *first = k->gathered, **last = k->gathered_last;
    size_t n = k->n_gathered;
    k->gathered = NULL;
    k->gathered_last = &k->gathered;
    k->n_gathered = 0;
    loop_timer_clear(k->w->loop, &k->gather);
    if (start(k, n, &err) < 0)
        refuse(k, first, &err);
    else
        give(k, first, last);
}

static void on_gathered(struct timer *t)
{
    hand_over(OWNER(t, struct keeping, gather));
}

/* A sync costs the same for one as for many. Whoever runs few jobs waits for nobody. */
static bool enough(const struct keeping *k)
{
    return k->n_gathered >= GATHER_MAX || k->n_gathered * GATHER_SHARE >= k->w->n_running;
}

static void gather(struct sink *s)
{
    struct keeping *k = &s->w->keep;
    s->next = NULL;
    *k->gathered_last = s;
    k->gathered_last = &s->next;
    k->away++;
    if (!k->n_gathered++)
        loop_timer_set(k->w->loop, &k->gather, GATHER_FOR);
    if (enough(k))
        hand_over(k);
}

void keep_try(struct worker *w, int64_t bytes)
{
    struct keeping *k = &w->keep;
    struct pawl_err err = {0};
    if (start(k, 0, &err) < 0) {
        lake_hold_tried(w, err.code, &err);
        return;
    }
    struct sink *s = new_sink(w);
    s->trial = bytes;
    k->away++;
    give(k, s, &s->next);
}

/* ---- what a run wants kept ---- */

void keep_sink(struct sink *s, struct sv name, struct sv type, kept_fn *done, void *arg)
{
    s->name = mem_dup(name.p, name.n);
    s->type = type.p ? mem_dup(type.p, type.n) : NULL;
    name_origin(s);
    s->done = done;
    s->arg = arg;
    gather(s);
}

static void on_kept_before(void *arg, const struct artifact *a)
{
    struct sink *s = arg;
    if (!a) {
        const struct kept none = {.rc = PAWL_ENOTFOUND, .message = "nothing was kept before"};
        s->done(s->arg, &none);
        keep_sink_drop(s);
        return;
    }
    s->same = *a;
    s->same.place.p = mem_dup(a->place.p, a->place.n);
    gather(s);
}

void keep_confirm(struct run *r, const struct exchange *x, kept_fn *done, void *arg)
{
    struct sink *s = make(r);
    keep_about(s, x);
    s->name = mem_strdup("");
    s->done = done;
    s->arg = arg;
    asks_kept(r, on_kept_before, s);
}

void keep_file(struct run *r, const char *path, struct sv name, struct sv type, kept_fn *done,
               void *arg)
{
    struct sink *s = make(r);
    lake_hold_keeps(s->w, s->kind);
    s->file = mem_strdup(path);
    keep_sink(s, name, type, done, arg);
}

static void tell(struct sink *s)
{
    struct worker *w = s->w;
    struct lake_item *i = &s->item;
    struct kept kept = {.rc = i->rc < 0 ? refused(s, &i->err) : 0, .message = i->err.msg};
    if (i->rc == 0) {
        kept.what = (struct artifact){.name = sv_of(s->name),
                                      .type = sv_of(s->type),
                                      .size = i->size,
                                      .stored = i->stored,
                                      .codec = i->codec,
                                      .place = sv_of(i->place)};
        memcpy(kept.what.sha256, i->sha256, SHA256_LEN);
        bool new = !s->same.place.p;
        metric_add(&w->metrics, METRIC_lake_objects, new);
        metric_add(&w->metrics, METRIC_lake_bytes, new ? i->size : 0);
        lake_hold_kept(w, s->kind, new ? i->stored : 0);
    }
    s->done(s->arg, &kept);
    keep_sink_drop(s);
}

static void end_trial(struct sink *s)
{
    struct worker *w = s->w;
    int rc = s->item.rc;
    struct pawl_err err = s->item.err;
    keep_sink_drop(s); /* first: the next one may want the handles anew */
    lake_hold_tried(w, rc, &err);
}

void keep_news(struct worker *w)
{
    struct keeping *k = &w->keep;
    pthread_mutex_lock(&k->lock);
    struct sink *s = k->out;
    k->out = NULL;
    pthread_mutex_unlock(&k->lock);
    for (struct sink *next; s; s = next) {
        next = s->next;
        k->away--;
        if (s->trial)
            end_trial(s);
        else
            tell(s);
    }
}
