/* The lake's threads: they hash, compress and sync what runs want kept. The loop gathers it for
 * some milliseconds, so that many share a sync; while one thread waits for the disk the other
 * writes the next group. Answers go back to the loop, which tells the handlers. */
#ifndef PAWL_WORKER_KEEP_THREAD_H
#define PAWL_WORKER_KEEP_THREAD_H

#include "handler.h"
#include "lake.h"
#include "worker.h"
#include <pthread.h>

struct worker;
struct sink;

enum { KEEP_THREADS = 2 };

struct keep_thread {
    struct keeping *all;
    pthread_t thread;
    bool started;
    struct lake *lake; /* the thread's own, opened by the loop before it starts */
};

struct keeping {
    struct worker *w;
    struct lake *lake;   /* the loop's, for spools; opened when first needed */
    struct boot opening; /* when that last failed: it is not tried for each job */
    struct pawl_err open_err;
    struct keep_thread threads[KEEP_THREADS];
    size_t sinks;       /* all there are: their spools hang on the loop's handle */
    size_t away;        /* sinks whose answer is outstanding, gathered ones included */
    struct sink *spare; /* those that have gone, with their buffers, for the next ones */
    size_t n_spare;
    struct sink *gathered, **gathered_last;
    size_t n_gathered;
    struct timer gather; /* when they go, however few they are */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond;
    struct sink *in, **in_last;
    struct sink *out;
    bool quit;
};

/* Does this worker's lake keep records, of exchanges too? */
bool keep_packs(const struct worker *w);
void keep_init(struct worker *w);
void keep_done(struct worker *w); /* ends the thread; nothing is outstanding any more */
/* Loop thread, after a wake-up: tell what was kept. */
void keep_news(struct worker *w);
/* Bytes free for the lake. */
PAWL_MUST_USE int keep_free(struct worker *w, int64_t *out, struct pawl_err *err);
/* After it refused something: let go of the handles, as soon as nothing hangs on them. Another file
 * system may be there by now, or the folders were made again. */
void keep_anew(struct worker *w);
/* Try whether it takes so many bytes; lake_hold_tried() comes, perhaps from within the call. */
void keep_try(struct worker *w, int64_t bytes);

/* The part of run_services that is about bytes. */
struct sink *keep_sink_open(struct run *r);
int keep_sink_write(struct sink *s, struct sv bytes, struct pawl_err *err);
void keep_sink_drop(struct sink *s);
void keep_about(struct sink *s, const struct exchange *x);
void keep_confirm(struct run *r, const struct exchange *x, kept_fn *done, void *arg);
void keep_sink(struct sink *s, struct sv name, struct sv type, kept_fn *done, void *arg);
void keep_file(struct run *r, const char *path, struct sv name, struct sv type, kept_fn *done,
               void *arg);

#endif
