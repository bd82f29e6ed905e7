/* What the files of the alerts share. Thread: everything but `lock`, the members after it, and
 * alerts_send.c belongs to the alerts thread. */
#ifndef PAWL_WORKER_ALERTS_INTERNAL_H
#define PAWL_WORKER_ALERTS_INTERNAL_H

#include "alerts.h"
#include "clock.h"
#include "mem.h"
#include "store.h"
#include "worker.h"
#include <pthread.h>

enum {
    SUBJECTS_MAX = 1000,  /* told about, or waiting to be, at a time */
    EVENTS_MAX = 20000,   /* of one look */
    DETAILS_MAX = 1000,   /* failed jobs of one look whose error is asked for */
    ALERT_TEXT_MAX = 300, /* bytes of a message from elsewhere */
    ALERT_BODY_MAX = 256 << 10,
    ALERT_DETAIL_MAX = 16 << 10,
};

/* One thing told about: pending is what happened and is not told yet. */
struct subject {
    uint64_t key;
    const struct alert_conf *alert;
    const char *type; /* static */
    char *text;       /* "wiki/parse e3f1c2" */

    int64_t count;  /* pending; 0: nothing */
    int64_t first;  /* number of the first event: part of the id */
    int64_t before; /* the cursor when it was found; INT64_MAX: no event */
    struct wall at;
    char *message, *sample, *detail; /* of the latest; sample, detail: JSON or NULL */

    char *body; /* being told: the JSON; NULL: nothing is */
    int64_t body_before;
    struct boot body_since;
    int tries;
    struct boot not_before; /* held back, or waiting to try again */
};

/* What happened, on its way to a subject. */
struct happening {
    const struct alert_conf *alert;
    const char *type;
    struct sv text, message;
    struct sv sample, detail; /* p NULL: none */
    int64_t number, before;
    struct wall at;
    int64_t count;
};

/* Where a target stands. READY is set by the thread, SENDING and ENDED by the loop. */
enum channel_state { CHANNEL_FREE, CHANNEL_READY, CHANNEL_SENDING, CHANNEL_ENDED };
struct channel {
    const struct alert_conf *alert;
    struct alerts *alerts;
    enum channel_state state;
    uint64_t subject; /* its key */
    struct str body;
    bool ok;
    struct dur retry_after; /* asked for by the target; us < 0: it did not */
    struct boot since;      /* SENDING */
    bool failing;           /* its last try failed */
    /* loop only */
    struct http_call *call;
    struct aside_run *aside;
};

struct alerts {
    const struct worker_options *o;
    pthread_t thread;
    bool started;
    struct boot began;

    struct store *store;
    struct session session; /* whose duty it is or may be */
    bool mine;
    struct wall from;                                        /* when it began, in store time */
    struct boot duty_at, done_at, look_at, rate_at, disk_at; /* next */
    struct event_cursor origin, cursor;
    int64_t done; /* as the store has it */
    bool told;    /* something since it was written down */
    struct subject *subjects;
    size_t n_subjects, cap_subjects, turn;
    struct boot disk_noted;
    bool disk_low;
    char host[256], place[512]; /* this machine; the store */
    struct queue_seen *queues;  /* alerts_watch.c */
    size_t n_queues, cap_queues;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond;
    struct session asked;     /* the loop's session; id.v 0: none */
    struct channel *channels; /* one for each alert */
    bool begun, quit, ending, idle;
    int64_t dropped;
    char trouble[200]; /* for the log; "" nothing */

    /* loop only */
    struct worker *worker;
    struct timer tick;
    struct boot flush_from, give_up;
    bool closing; /* only ends of commands are waited for */
};

/* alerts_subjects.c */
void subjects_add(struct alerts *a, const struct happening *h);
void subjects_send(struct alerts *a, bool ending); /* under the lock */
void subjects_clear(struct alerts *a);
int64_t subjects_kept(const struct alerts *a); /* the cursor up to which all is told */
/* Under the lock: nothing is left that the end should wait for. */
bool subjects_idle(const struct alerts *a);

/* alerts_events.c: one look at what is new */
PAWL_MUST_USE int alerts_look(struct alerts *a, struct pawl_err *err);

/* alerts_watch.c: what no event tells */
void alerts_rates(struct alerts *a, struct arena *arena);
void alerts_disk(struct alerts *a);
void alerts_watch_done(struct alerts *a);

/* alerts_text.c */
void alert_body(const struct alerts *a, const struct subject *s, struct str *out);
/* {"id":…,"queue":…} of a failed job. */
void alert_sample(const struct job_view *job, struct str *out);

/* alerts_send.c, loop thread */
void channels_start(struct alerts *a, struct worker *w);
void channels_cancel(struct alerts *a);
bool channels_quiet(const struct alerts *a);

#endif
