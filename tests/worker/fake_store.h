/* A store in memory for tests of the worker: the contract of store.h as far as a worker needs it,
 * with faults on demand. One struct fake is the "file"; every handle on it is a struct store. */
#ifndef PAWL_TESTS_FAKE_STORE_H
#define PAWL_TESTS_FAKE_STORE_H

#include "store.h"
#include <pthread.h>

enum fake_fault {
    FAULT_NONE,
    FAULT_BEFORE,    /* the call fails and nothing happened */
    FAULT_UNCERTAIN, /* a commit: it happens, and the caller is told UNCERTAIN. Others: BEFORE */
};

struct fake_attempt {
    int64_t fence;
    enum outcome outcome;
};
struct fake_job {
    int64_t id;
    char queue[32], kind[32];
    enum job_state state;
    int attempt, transient, max_attempts, priority;
    int64_t fence, owner, available_us;
    bool cancel_asked;
    int terminal_events;       /* must end as 1 */
    bool throttled, timed_out; /* of the last settle */
    int64_t retry_after_us;
    char error[128];
    struct fake_attempt attempts[8];
    int n_attempts;
};
struct fake_session {
    int64_t id;
    bool alive;
    int64_t until_us, lease_us;
    enum worker_command command;
    char filter[512];
};
struct fake_paused {
    char queue[32];
};

struct fake {
    pthread_mutex_t lock; /* the write lock: held from group_begin to its end */
    pthread_cond_t changed;
    struct fake_job *jobs;
    size_t n_jobs, cap_jobs, first_live; /* all before first_live are terminal */
    struct fake_session sessions[64];
    int n_sessions;
    struct fake_paused paused[8];
    int n_paused;
    int hints[64]; /* eventfds of open handles; -1: free */
    bool rollback; /* keep copies for aborts; off for the speed test */
    struct fake_job *copy;
    size_t n_copy;

    /* faults: the fail_at-th call from now on fails with `code` (counting only calls in groups,
     * opening and reading back), and so do the next fail_more calls */
    int fail_at, fail_more, code;
    enum fake_fault fault;
    int calls, failed;
    bool down;             /* everything fails */
    const char *late_kind; /* a job of this kind is added during the next claim that finds none */
    int64_t claims, renewals, sweeps;

    /* limits */
    int busy;                  /* so many claims meet others at work */
    const char *gated;         /* jobs of this kind need a permit, */
    int permits, used;         /* of these */
    bool policy_null;          /* policy_apply: only what is built in */
    int policies, policy_code; /* policy_apply: calls; < 0: it fails */
    int64_t policy_claims;     /* claims before the last of them */
    char policy_text[2048];
    char preflight[256]; /* of the last renewal that said something */
    int64_t ages, histories;
};

void fake_init(struct fake *f);
void fake_done(struct fake *f);
int64_t fake_add(struct fake *f, const char *queue, const char *kind);
void fake_hint(struct fake *f); /* wake all handles */
int fake_open(void *fake, struct store **out, struct pawl_err *err);
void fake_ask(struct fake *f, enum worker_command c);
void fake_cancel(struct fake *f, int64_t id);
void fake_pause(struct fake *f, const char *queue);
void fake_expire_sessions(struct fake *f); /* as if their leases had run out; jobs are requeued */
int64_t fake_count(struct fake *f, enum job_state state);
struct fake_job fake_job(struct fake *f, int64_t id);

#endif
