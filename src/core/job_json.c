/* A job as a JSON object: the lines of `pawl import` and of a job's control channel. */
#include "job.h"

#include "json.h"
#include "mem.h"

struct reading {
    const struct json *doc;
    struct wall now;
    struct arena *arena;
    struct job_spec *spec;
    struct pawl_err *err;
};

static int want(struct reading *r, const char *field, uint32_t at, enum json_type type)
{
    if (json_type(r->doc, at) == type)
        return 0;
    return err_set(r->err, PAWL_EINPUT, "field \"%s\" is %s; %s is expected", field,
                   json_type_name(json_type(r->doc, at)), json_type_name(type));
}

static int read_text(struct reading *r, const char *field, uint32_t at, struct sv *out)
{
    if (json_type(r->doc, at) == JSON_NULL)
        return 0;
    if (want(r, field, at, JSON_STRING) < 0)
        return PAWL_EINPUT;
    *out = json_string(r->doc, at, r->arena);
    return 0;
}

static int read_int(struct reading *r, const char *field, uint32_t at, int min, int max, int *out)
{
    int64_t v;
    if (want(r, field, at, JSON_NUMBER) < 0)
        return PAWL_EINPUT;
    if (json_i64(r->doc, at, min, max, &v) < 0)
        return err_set(r->err, PAWL_EINPUT,
                       "field \"%s\" is " SV_FMT "; a whole number from %d to %d is expected",
                       field, SV_ARG(json_source(r->doc, at)), min, max);
    *out = (int)v;
    return 0;
}

static int read_dur(struct reading *r, const char *field, uint32_t at, bool none, struct dur *out)
{
    if (want(r, field, at, JSON_STRING) < 0)
        return PAWL_EINPUT;
    if (dur_parse(json_string(r->doc, at, r->arena), none, out, r->err) < 0)
        return err_wrap(r->err, "field \"%s\"", field);
    return 0;
}

/* Zero would mean "not given". */
static int read_timeout(struct reading *r, uint32_t at)
{
    struct dur d;
    if (read_dur(r, "timeout", at, true, &d) < 0)
        return PAWL_EINPUT;
    if (d.us == 0)
        return err_set(r->err, PAWL_EINPUT, "field \"timeout\" is zero; write none for no limit");
    r->spec->timeout = d;
    return 0;
}

static int read_at(struct reading *r, uint32_t at)
{
    if (want(r, "at", at, JSON_STRING) < 0)
        return PAWL_EINPUT;
    if (wall_parse(json_string(r->doc, at, r->arena), r->now, &r->spec->at, r->err) < 0)
        return err_wrap(r->err, "field \"at\"");
    return 0;
}

/* The payload is kept as the bytes that were written, not as a value. */
static int read_payload(struct reading *r, uint32_t at)
{
    r->spec->payload = json_source(r->doc, at);
    return 0;
}

static int read_field(struct reading *r, struct sv name, uint32_t at)
{
    static const char *const names[] = {"queue",    "kind",    "key",          "host",
                                        "priority", "payload", "max_attempts", "timeout",
                                        "at",       "in",      "lock"};
    struct job_spec *s = r->spec;
    if (sv_eq(name, SV("queue")))
        return read_text(r, "queue", at, &s->queue);
    if (sv_eq(name, SV("kind")))
        return read_text(r, "kind", at, &s->kind);
    if (sv_eq(name, SV("key")))
        return read_text(r, "key", at, &s->key);
    if (sv_eq(name, SV("host")))
        return read_text(r, "host", at, &s->host);
    if (sv_eq(name, SV("priority")))
        return read_int(r, "priority", at, PRIORITY_MIN, PRIORITY_MAX, &s->priority);
    if (sv_eq(name, SV("max_attempts")))
        return read_int(r, "max_attempts", at, 1, ATTEMPTS_MAX, &s->max_attempts);
    if (sv_eq(name, SV("payload")))
        return read_payload(r, at);
    if (sv_eq(name, SV("timeout")))
        return read_timeout(r, at);
    if (sv_eq(name, SV("in")))
        return read_dur(r, "in", at, false, &s->delay);
    if (sv_eq(name, SV("at")))
        return read_at(r, at);
    if (sv_eq(name, SV("lock")))
        return read_text(r, "lock", at, &s->lock);
    const char *near = sv_nearest(name, names, ARRAY_LEN(names));
    return err_set(r->err, PAWL_EINPUT, "unknown field \"" SV_FMT "\"%s%s%s", SV_ARG(name),
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

int job_spec_from_json(const struct json *doc, uint32_t object, struct wall now, struct arena *a,
                       struct job_spec *spec, struct pawl_err *err)
{
    struct job_spec read = *spec;
    struct reading r = {doc, now, a, &read, err};
    if (json_type(doc, object) != JSON_OBJECT)
        return err_set(err, PAWL_EINPUT, "a job is an object, this is %s",
                       json_type_name(json_type(doc, object)));
    for (uint32_t k = json_first(doc, object); k != json_end(doc, object);
         k = json_after(doc, k + 1))
        if (read_field(&r, json_string(doc, k, a), k + 1) < 0)
            return PAWL_EINPUT;
    if (job_spec_check(&read, err) < 0)
        return PAWL_EINPUT;
    *spec = read;
    return 0;
}
