/* Checked wrappers: what every store may rely on and every caller gets. */
#include "store.h"

#include <assert.h>
#include <stdio.h>

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

int store_enqueue(struct store *s, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                  struct add_result *out, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (job_spec_check(&specs[i], err) < 0)
            return PAWL_EINPUT;
    return s->ops->enqueue(s, specs, n, dup, out, err);
}

int store_claim(struct store *s, const struct claim_request *req, struct arena *a,
                struct claim_result *out, struct pawl_err *err)
{
    int rc = s->ops->claim(s, req, a, out, err);
    if (rc < 0)
        return rc;
    size_t want = 0;
    for (size_t i = 0; i < req->n_pools; i++)
        want += req->pools[i].want > 0 ? (size_t)req->pools[i].want : 0;
    assert(out->n <= want);
    for (size_t i = 0; i < out->n; i++)
        assert(out->leases[i].fence.v > 0 && out->leases[i].attempt > 0);
    return 0;
}

int store_settle(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
                 struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        assert(v[i].fence.v > 0 && v[i].outcome != OUTCOME_LOST);
        if ((v[i].n_artifacts || v[i].fetch) && settle_check(&v[i], err) < 0)
            return PAWL_EINPUT;
    }
    return s->ops->settle(s, v, n, out, err);
}

const char *worker_command_name(enum worker_command c)
{
    static const char *const names[] = {"none", "pause", "resume", "drain", "stop"};
    return names[c];
}

bool worker_command_holds(enum worker_command c)
{
    return c == COMMAND_PAUSE || c == COMMAND_STOP;
}

void store_log_name(job_id id, fence_no fence, char out[64])
{
    snprintf(out, 64, "%02lld/%02lld/%lld.%lld.log", (long long)(id.v / 10000 % 100),
             (long long)(id.v / 100 % 100), (long long)id.v, (long long)fence.v);
}
