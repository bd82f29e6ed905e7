#include "job.h"

#include "mem.h"
#include "text.h"

static const struct {
    const char *name;
    bool terminal;
} states[N_JOB_STATES] = {
#define X(name, number, text, terminal) [number] = {text, terminal},
#include "states.def"
#undef X
};

static const struct {
    enum event_type type;
    const char *name;
    bool terminal, act;
} events[] = {
#define X(name, number, text, terminal, act) {EVENT_##name, text, terminal, act},
#include "events.def"
#undef X
};

const char *job_state_name(enum job_state s)
{
    return states[s].name;
}

bool job_state_terminal(enum job_state s)
{
    return states[s].terminal;
}

int job_state_parse(struct sv name, enum job_state *out)
{
    for (int i = 0; i < N_JOB_STATES; i++)
        if (sv_eq(name, sv_of(states[i].name))) {
            *out = (enum job_state)i;
            return 0;
        }
    return -1;
}

const char *event_name(enum event_type t)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i].type == t)
            return events[i].name;
    return "unknown";
}

bool event_terminal(enum event_type t)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i].type == t)
            return events[i].terminal;
    return false;
}

bool event_operator_act(enum event_type t)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i].type == t)
            return events[i].act;
    return false;
}

int event_parse(struct sv name, enum event_type *out)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (sv_eq(name, sv_of(events[i].name))) {
            *out = events[i].type;
            return 0;
        }
    return -1;
}

const char *fail_class_name(enum fail_class c)
{
    static const char *const names[] = {NULL, "transient", "error", "fatal", "lost"};
    return names[c];
}

const char *outcome_name(enum outcome o)
{
    static const char *const names[] = {"done",     "skipped",   "failed", "retry",
                                        "released", "cancelled", "lost"};
    return names[o];
}

const char *wait_reason_name(enum wait_reason r)
{
    static const char *const names[] = {NULL, "delay", "backoff", "retry_after", "asked", "lost"};
    return names[r];
}

struct job_spec job_spec_default(void)
{
    return (struct job_spec){.queue = SV("default"), .kind = SV("exec"), .payload = SV("null")};
}

static int check_text(struct sv s, const char *field, size_t max, bool may_be_empty,
                      struct pawl_err *err)
{
    if (!s.p)
        return 0;
    if (s.n == 0 && !may_be_empty)
        return err_set(err, PAWL_EINPUT, "%s is empty", field);
    if (s.n > max)
        return err_set(err, PAWL_EINPUT, "%s is longer than %zu bytes", field, max);
    size_t bad = text_bad_utf8(s);
    if (bad < s.n)
        return err_set(err, PAWL_EINPUT, "%s is not valid UTF-8 at byte %zu", field, bad);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return err_set(err, PAWL_EINPUT, "%s has a control character at byte %zu", field, i);
    return 0;
}

static int check_range(int64_t v, int64_t min, int64_t max, const char *field, struct pawl_err *err)
{
    if (v >= min && v <= max)
        return 0;
    return err_set(err, PAWL_EINPUT, "%s is %lld; allowed are %lld to %lld", field, (long long)v,
                   (long long)min, (long long)max);
}

int name_check(struct sv name, const char *field, struct pawl_err *err)
{
    return check_text(name, field, NAME_MAX_BYTES, false, err);
}

int job_spec_check(const struct job_spec *s, struct pawl_err *err)
{
    if (!s->queue.p || !s->kind.p)
        return err_set(err, PAWL_EINPUT, "%s is missing", s->queue.p ? "kind" : "queue");
    if (name_check(s->queue, "queue", err) < 0 || name_check(s->kind, "kind", err) < 0 ||
        check_text(s->key, "key", KEY_MAX_BYTES, false, err) < 0 ||
        name_check(s->host, "host", err) < 0 || name_check(s->lock, "lock", err) < 0 ||
        check_range(s->priority, PRIORITY_MIN, PRIORITY_MAX, "priority", err) < 0 ||
        check_range(s->max_attempts, 0, ATTEMPTS_MAX, "max_attempts", err) < 0 ||
        check_range(s->delay.us, 0, DUR_MAX_US, "delay", err) < 0)
        return PAWL_EINPUT;
    if (s->delay.us && s->at.us)
        return err_set(err, PAWL_EINPUT, "\"in\" and \"at\" exclude each other");
    if (s->payload.n > PAYLOAD_MAX_BYTES)
        return err_set(err, PAWL_EINPUT, "payload is longer than %d bytes", PAYLOAD_MAX_BYTES);
    return 0;
}
