/* Two stores side by side: every operation is done on both with the same arguments. What they
 * answer, and what they show after each step of a few operations, written by the command line's own
 * writers, is compared byte by byte.
 *
 * Ids are handed out with gaps by one store and without by the other, so jobs and events are known
 * by their number here: the order in which they appeared, which must be the same. Times are written
 * as near, far ahead or long ago; null stays null. Events of breakers come after or between those
 * of the jobs of an operation: they are compared by themselves. */
#ifndef PAWL_TESTS_SIDES_H
#define PAWL_TESTS_SIDES_H

#include "config.h"
#include "json.h"
#include "store.h"

enum { N_SIDES = 2, N_HANDLES = 2, N_WORKERS = 8, KNOWN_MAX = 2000, TOUCHED_MAX = 16 };
#define BREAKER_EVENTS                                                                             \
    (1u << EVENT_BREAKER_OPENED | 1u << EVENT_BREAKER_PROBED | 1u << EVENT_BREAKER_CLOSED)
#define LONG_TIME DUR_S(7200) /* for leases and delays that do not end during the test */

/* Operations of the store, counted. */
#define SIDES_OPS(X)                                                                               \
    X(enqueue)                                                                                     \
    X(session_begin)                                                                               \
    X(session_end)                                                                                 \
    X(renew)                                                                                       \
    X(claim)                                                                                       \
    X(settle)                                                                                      \
    X(sweep)                                                                                       \
    X(held)                                                                                        \
    X(act)                                                                                         \
    X(pause)                                                                                       \
    X(worker_ask)                                                                                  \
    X(group_begin)                                                                                 \
    X(group_commit)                                                                                \
    X(group_abort)                                                                                 \
    X(job_get)                                                                                     \
    X(list)                                                                                        \
    X(count)                                                                                       \
    X(events)                                                                                      \
    X(status)                                                                                      \
    X(report)                                                                                      \
    X(info)                                                                                        \
    X(check)                                                                                       \
    X(now)                                                                                         \
    X(limit)                                                                                       \
    X(effort)                                                                                      \
    X(migrate)                                                                                     \
    X(wake_fd)                                                                                     \
    X(wake_clear)                                                                                  \
    X(log_dir)                                                                                     \
    X(limit_act)                                                                                   \
    X(policy_apply)                                                                                \
    X(policy)                                                                                      \
    X(gates)                                                                                       \
    X(breaker_act)                                                                                 \
    X(admit)                                                                                       \
    X(pace)                                                                                        \
    X(locks)                                                                                       \
    X(lock_release)                                                                                \
    X(explain)                                                                                     \
    X(duty)                                                                                        \
    X(note)                                                                                        \
    X(prune_history)                                                                               \
    X(age)                                                                                         \
    X(remember)                                                                                    \
    X(recall)                                                                                      \
    X(artifacts)                                                                                   \
    X(artifacts_lost)                                                                              \
    X(artifacts_move)                                                                              \
    X(artifacts_expire)                                                                            \
    X(fetches)                                                                                     \
    X(fetch_totals)
enum sides_op {
#define X(name) OP_##name,
    SIDES_OPS(X)
#undef X
        N_OPS
};

/* Native ids by number - 1, rising. */
struct ids {
    int64_t *v;
    size_t n, cap;
};
void ids_note(struct ids *ids, int64_t native);            /* the next number, if it is new */
int64_t ids_number(const struct ids *ids, int64_t native); /* 0 for 0, -1 if unknown */
int64_t ids_native(const struct ids *ids, int64_t number); /* one that nobody has if unknown */

struct side {
    const char *name;
    struct store *handles[N_HANDLES], *s; /* s: the one in use */
    struct store *upgrader;               /* opened for migrating */
    struct ids jobs, events, artifacts;
    struct lease_hint *hints; /* by number of the job */
    size_t n_hints;
    struct session workers[N_WORKERS];
    struct event_cursor cursor;
    int64_t breakers_after, group_breakers; /* events of breakers up to here have been compared;
                                               when the group began */
    struct str followed; /* what the cursor gave and the other side has not given yet */
    struct store_effort effort[N_HANDLES];
    struct str text; /* what it answered and showed in this step */
    struct arena a;
    struct pawl_err e;
};

struct known {
    int64_t id, fence;
    enum job_state state;
    char queue[16], key[32]; /* key "": none */
};
enum worker_life { WORKER_NONE, WORKER_LIVES, WORKER_EXPIRED, WORKER_OVER };

struct sides {
    struct side side[N_SIDES];
    struct config *config;
    uint64_t seed, rng;
    long step, done, wanted, counts[N_OPS]; /* done: operations so far */
    bool in_group;
    bool look; /* the step must end: there are jobs that are not known yet */
    int handle;
    struct str said; /* the operations of this step with their arguments */
    struct arena a;  /* for those */
    struct known jobs[KNOWN_MAX];
    int n_jobs;
    enum worker_life lives[N_WORKERS];
    int busy; /* the worker that claimed last */
    int64_t metrics[N_WORKERS][N_METRICS];
    int64_t touched[TOUCHED_MAX]; /* jobs that this step's events tell of */
    int n_touched;
    struct wall began, now;
    /* Known when the group began. */
    size_t group_jobs[N_SIDES], group_events[N_SIDES], group_artifacts[N_SIDES];
};
#define EACH_SIDE(r, d) for (struct side *d = (r)->side; d < (r)->side + N_SIDES; d++)

int roll(struct sides *r, int n); /* 0 … n - 1 */
/* A random operation begins; then what it is, for the message of a failure. */
void next_operation(struct sides *r);
void say(struct sides *r, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* Count an operation once for both. */
void counted(struct sides *r, enum sides_op op);
/* Write its answer down: "ok", or the name of the error. Returns rc. */
int answer(struct side *d, int rc);

/* Both stores new and open. On failure err says why. */
PAWL_MUST_USE int sides_open(struct sides *r, const char *dir, const char *pg_url,
                             struct pawl_err *err);
void sides_close(struct sides *r);
/* Clear what the last step said and showed, and take one of the handles. */
void sides_begin_step(struct sides *r);
/* Equal? If not, appends seed, step, operation and the first difference. */
bool sides_equal(struct sides *r, struct str *out);
void sides_group_begin(struct sides *r);
void sides_group_end(struct sides *r, bool keep);

/* sides_ops.c, sides_ask.c: an operation by chance, one that changes something or only looks. */
void sides_change(struct sides *r);
void sides_ask(struct sides *r);
/* sides_lease.c: those of workers. */
void op_session(struct sides *r); /* begin, expire or end one; not in a group */
void op_renew(struct sides *r);
void op_claim(struct sides *r);
void op_settle(struct sides *r);
void op_held(struct sides *r);
void op_sweep(struct sides *r);
/* sides_limits.c: those of limits, gates, locks, and what is done beside the jobs. */
void sides_limit(struct sides *r);
void show_policy(struct sides *r);
void show_gates(struct sides *r, const struct gate_filter *f);
void show_locks(struct sides *r, struct sv key);
/* sides_kept.c: those of what settles leave behind, and of what workers remember. */
void sides_keep(struct sides *r);
void pick_left(struct sides *r, struct settle *v);
void show_new_artifacts(struct sides *r);
void show_kept(struct sides *r); /* all of it */
/* sides_ops.c: a time behind all that has happened on that side, before what is to come; the newest
 * event is then one that both have. */
struct wall after_all(struct side *d);

/* sides_pick.c: arguments by chance; jobs by number. */
struct job_spec pick_spec(struct sides *r);
void say_spec(struct sides *r, const struct job_spec *s);
void pick_selection(struct sides *r, struct selection *out);
int64_t pick_job(struct sides *r);                              /* now and then of none */
const struct known *pick_in(struct sides *r, enum job_state s); /* NULL: none */
struct sv pick_queue(struct sides *r);
struct sv pick_error(struct sides *r);
struct sv pick_lock(struct sides *r);
struct sv pick_peer(struct sides *r); /* a host that a job may be led to */
extern const char *const kind_names[3];
/* The same for one side, numbers translated. */
struct job_spec spec_for(const struct side *d, const struct job_spec *s);
struct selection selection_for(struct side *d, const struct selection *s);

/* sides_look.c: what they show. */
void sides_show(struct sides *r);     /* list, what was touched, events, status */
void sides_show_all(struct sides *r); /* every job with its attempts, all events, the report */
void show_job(struct sides *r, int64_t number);
void show_status(struct sides *r, int max_running);
void show_report(struct sides *r, struct sv queue);
void sides_follow(struct sides *r);
bool sides_follow_ends(struct sides *r); /* both have given all there is */
struct looking {
    struct sides *r;
    struct side *d;
    bool note; /* learn which there are */
};
bool look_at_job(void *arg, const struct job_view *job);
bool look_at_event(void *arg, const struct event_view *e);
struct wall mask_wall(const struct sides *r, struct wall t);
int64_t mask_left(struct dur d); /* -1 none, 0 soon, 1 long */

#endif
