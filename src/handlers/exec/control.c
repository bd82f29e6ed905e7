/* Control lines: what a job says on descriptor 3. */
#include "exec_parts.h"

#include "text.h"

enum { ARTIFACT_TEXT_MAX = 4095 };

void exec_control_init(struct exec_control *c, struct run *r, struct arena *a)
{
    *c = (struct exec_control){
        .run = r, .arena = a, .asked = DUR_NONE, .retry_after = DUR_NONE, .cls = CLASS_ERROR};
}

void exec_control_done(struct exec_control *c)
{
    json_done(&c->doc);
    free(c->children);
    free(c->artifacts);
}

static int want(const struct exec_control *c, uint32_t at, const char *member, enum json_type type,
                struct pawl_err *err)
{
    if (json_type(&c->doc, at) == type)
        return 0;
    return err_set(err, PAWL_EINPUT, "\"%s\" is %s; %s is expected", member,
                   json_type_name(json_type(&c->doc, at)), json_type_name(type));
}

static int within(struct sv json, size_t max, const char *member, struct pawl_err *err)
{
    if (json.n <= max)
        return 0;
    return err_set(err, PAWL_EINPUT, "\"%s\" has %zu bytes; at most %zu are allowed", member,
                   json.n, max);
}

static int on_result(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    struct sv json = json_source(&c->doc, at);
    int rc = within(json, RESULT_MAX_BYTES, "result", err);
    if (rc == 0)
        c->result = json;
    return rc;
}

static int on_progress(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    struct sv json = json_source(&c->doc, at);
    int rc = within(json, PROGRESS_MAX_BYTES, "progress", err);
    if (rc == 0)
        c->run->progress(c->run, json);
    return rc;
}

static int on_job(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    struct job_spec spec = job_spec_default();
    spec.queue = c->run->job->queue;
    int rc = want(c, at, "job", JSON_OBJECT, err);
    if (rc == 0 && c->n_children == CHILDREN_MAX)
        rc = err_set(err, PAWL_EINPUT, "more than %d child jobs", CHILDREN_MAX);
    if (rc == 0)
        rc = job_spec_from_json(&c->doc, at, clock_wall(), c->arena, &spec, err);
    if (rc == 0)
        rc = job_spec_check(&spec, err);
    if (rc < 0)
        return rc;
    ARRAY_GROW(c->children, c->n_children, c->cap_children);
    c->children[c->n_children++] = spec;
    return 0;
}

static int artifact_text(struct exec_control *c, uint32_t object, const char *member, bool needed,
                         struct sv *out, struct pawl_err *err)
{
    uint32_t at = json_member(&c->doc, object, sv_of(member));
    *out = SV_NONE;
    if (!at)
        return needed ? err_set(err, PAWL_EINPUT, "\"artifact\" needs \"%s\"", member) : 0;
    int rc = want(c, at, member, JSON_STRING, err);
    if (rc < 0)
        return rc;
    *out = json_string(&c->doc, at, c->arena);
    if (!out->n || memchr(out->p, '\0', out->n) || out->n > ARTIFACT_TEXT_MAX)
        return err_set(err, PAWL_EINPUT, "\"%s\" of an artifact is 1 to %d bytes without NUL",
                       member, ARTIFACT_TEXT_MAX);
    return 0;
}

static bool named_already(const struct exec_control *c, struct sv name)
{
    for (size_t i = 0; i < c->n_artifacts; i++)
        if (sv_eq(c->artifacts[i].name, name))
            return true;
    return false;
}

static int on_artifact(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    struct exec_artifact x = {0};
    struct sv path;
    int rc = want(c, at, "artifact", JSON_OBJECT, err);
    if (rc == 0 && c->n_artifacts == ARTIFACTS_MAX)
        rc = err_set(err, PAWL_EINPUT, "more than %d artifacts", ARTIFACTS_MAX);
    if (rc == 0)
        rc = artifact_text(c, at, "path", true, &path, err);
    if (rc == 0)
        rc = artifact_text(c, at, "name", true, &x.name, err);
    if (rc == 0)
        rc = artifact_text(c, at, "type", false, &x.type, err);
    if (rc == 0)
        rc = artifact_name_check(x.name, err);
    if (rc == 0 && named_already(c, x.name))
        rc = err_set(err, PAWL_EINPUT, "two artifacts are named '" SV_FMT "'", SV_ARG(x.name));
    if (rc < 0)
        return rc;
    x.path = arena_strndup(c->arena, path.p, path.n);
    ARRAY_GROW(c->artifacts, c->n_artifacts, c->cap_artifacts);
    c->artifacts[c->n_artifacts++] = x;
    return 0;
}

static int on_outcome(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    static const char *const names[] = {"done", "skip", "fatal", "retry"};
    int rc = want(c, at, "outcome", JSON_STRING, err);
    if (rc < 0)
        return rc;
    struct sv name = json_string(&c->doc, at, c->arena);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (sv_eq(name, sv_of(names[i]))) {
            c->outcome = SAID_DONE + i;
            c->reason = SV_NONE;
            c->asked = c->retry_after = DUR_NONE;
            c->throttled = false;
            c->cls = CLASS_ERROR;
            return 0;
        }
    return err_set(err, PAWL_EINPUT, "\"outcome\" must be done, skip, fatal or retry");
}

static int on_reason(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    int rc = want(c, at, "reason", JSON_STRING, err);
    if (rc == 0)
        c->reason = json_string(&c->doc, at, c->arena);
    return rc;
}

static int on_in(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    if (c->outcome != SAID_RETRY)
        return err_set(err, PAWL_EINPUT, "\"in\" belongs to \"outcome\":\"retry\"");
    int rc = want(c, at, "in", JSON_STRING, err);
    if (rc == 0)
        rc = dur_parse(json_string(&c->doc, at, c->arena), false, &c->asked, err);
    return rc;
}

static int on_class(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    if (c->outcome != SAID_RETRY)
        return err_set(err, PAWL_EINPUT, "\"class\" belongs to \"outcome\":\"retry\"");
    struct sv name =
        json_type(&c->doc, at) == JSON_STRING ? json_string(&c->doc, at, c->arena) : SV_NONE;
    if (sv_eq(name, SV("transient")))
        c->cls = CLASS_TRANSIENT;
    else if (sv_eq(name, SV("error")))
        c->cls = CLASS_ERROR;
    else
        return err_set(err, PAWL_EINPUT, "\"class\" must be transient or error");
    return 0;
}

static int on_throttled(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    if (c->outcome != SAID_RETRY)
        return err_set(err, PAWL_EINPUT, "\"throttled\" belongs to \"outcome\":\"retry\"");
    int rc = want(c, at, "throttled", JSON_BOOL, err);
    if (rc < 0)
        return rc;
    c->throttled = json_is_true(&c->doc, at);
    if (c->throttled)
        c->cls = CLASS_TRANSIENT;
    return 0;
}

static int on_retry_after(struct exec_control *c, uint32_t at, struct pawl_err *err)
{
    if (!c->throttled)
        return err_set(err, PAWL_EINPUT, "\"retry_after\" belongs to \"throttled\":true");
    int rc = want(c, at, "retry_after", JSON_STRING, err);
    if (rc == 0)
        rc = dur_parse(json_string(&c->doc, at, c->arena), false, &c->retry_after, err);
    return rc;
}

/* In this order, whatever the line's: an outcome comes before what qualifies it. */
static const struct member {
    const char *name;
    bool of_outcome;
    int (*on)(struct exec_control *c, uint32_t at, struct pawl_err *err);
} members[] = {
    {"progress", false, on_progress},
    {"result", false, on_result},
    {"job", false, on_job},
    {"artifact", false, on_artifact},
    {"outcome", false, on_outcome},
    {"reason", true, on_reason},
    {"in", true, on_in},
    {"class", true, on_class},
    {"throttled", true, on_throttled},
    {"retry_after", true, on_retry_after},
};

static int only_known(struct exec_control *c, struct pawl_err *err)
{
    for (uint32_t k = json_first(&c->doc, 0); k != json_end(&c->doc, 0);
         k = json_after(&c->doc, k + 1)) {
        struct sv name = json_string(&c->doc, k, c->arena);
        size_t i = 0;
        while (i < ARRAY_LEN(members) && !sv_eq(name, sv_of(members[i].name)))
            i++;
        if (i == ARRAY_LEN(members)) {
            AUTO_STR struct str shown = STR_INIT(STR_LINE);
            text_safe(&shown, name, 64);
            return err_set(err, PAWL_EINPUT, "member \"%s\" is not known", str_cstr(&shown));
        }
    }
    return 0;
}

static int take(struct exec_control *c, struct pawl_err *err)
{
    bool outcome = json_member(&c->doc, 0, SV("outcome")) != 0;
    int rc = only_known(c, err);
    for (size_t i = 0; i < ARRAY_LEN(members) && rc == 0; i++) {
        uint32_t at = json_member(&c->doc, 0, sv_of(members[i].name));
        if (!at)
            continue;
        if (members[i].of_outcome && !outcome)
            rc = err_set(err, PAWL_EINPUT, "\"%s\" needs \"outcome\"", members[i].name);
        else
            rc = members[i].on(c, at, err);
    }
    return rc;
}

/* What is kept must outlive the line; progress alone, which may come often, is not kept. */
static int parse(struct exec_control *c, struct sv line, struct pawl_err *err)
{
    int rc = json_parse(&c->doc, line, err);
    if (rc < 0)
        return rc;
    if (json_type(&c->doc, 0) != JSON_OBJECT)
        return err_set(err, PAWL_EINPUT, "an object is expected, not %s",
                       json_type_name(json_type(&c->doc, 0)));
    if (c->doc.nodes[0].count == 1 && json_member(&c->doc, 0, SV("progress")))
        return 0;
    return json_parse(&c->doc, sv_make(arena_strndup(c->arena, line.p, line.n), line.n), err);
}

void exec_control_line(struct exec_control *c, struct sv line, int64_t at, bool too_long)
{
    struct pawl_err err = {0};
    c->lines++;
    if (c->error.p || (!line.n && !too_long))
        return;
    int rc = too_long ? err_set(&err, PAWL_EINPUT,
                                "a line has at most %d MiB, all lines together %d MiB",
                                PROCESS_LINE_MAX >> 20, PROCESS_LINES_MAX >> 20)
                      : parse(c, line, &err);
    if (rc == 0)
        rc = take(c, &err);
    if (rc == 0)
        return;
    AUTO_STR struct str text = STR_INIT(ERROR_MAX_BYTES);
    str_addf(&text, "control line %lld (at byte %lld of descriptor 3): %s", (long long)c->lines,
             (long long)at, err.msg);
    c->error = sv_make(arena_strndup(c->arena, str_cstr(&text), text.len), text.len);
}
