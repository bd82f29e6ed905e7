#include "artifact.h"

#include "job.h"
#include "mem.h"
#include "text.h"

const char *codec_name(enum codec c)
{
    static const char *const names[] = {"none", "zstd"};
    return names[c];
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

int artifact_name_check(struct sv name, struct pawl_err *err)
{
    bool good = name.n > 0 && name.n <= ARTIFACT_NAME_MAX && name.p[0] != '.';
    for (size_t i = 0; good && i < name.n; i++)
        good = name_char(name.p[i]);
    if (good)
        return 0;
    return err_set(err, PAWL_EINPUT,
                   "an artifact's name is 1 to %d of A-Z a-z 0-9 . _ -, and begins with no dot",
                   ARTIFACT_NAME_MAX);
}

/* p NULL: none was given. */
static int check_text(struct sv s, const char *field, size_t max, struct pawl_err *err)
{
    if (s.n > max)
        return err_set(err, PAWL_EINPUT, "%s is longer than %zu bytes", field, max);
    size_t bad = s.p ? text_bad_utf8(s) : s.n;
    if (bad < s.n)
        return err_set(err, PAWL_EINPUT, "%s is not valid UTF-8 at byte %zu", field, bad);
    return 0;
}

static int check_artifact(const struct artifact *a, struct pawl_err *err)
{
    if (artifact_name_check(a->name, err) < 0 ||
        check_text(a->type, "an artifact's type", NAME_MAX_BYTES, err) < 0 ||
        check_text(a->place, "an artifact's place", PLACE_MAX_BYTES, err) < 0)
        return PAWL_EINPUT;
    if (!a->place.n)
        return err_set(err, PAWL_EINPUT, "an artifact has no place in the lake");
    if (a->size < 0 || a->stored < 0)
        return err_set(err, PAWL_EINPUT, "an artifact's size is negative");
    return 0;
}

static int check_artifacts(const struct settle *v, struct pawl_err *err)
{
    if (v->n_artifacts > ARTIFACTS_MAX)
        return err_set(err, PAWL_EINPUT, "%zu artifacts of one attempt; allowed are %d",
                       v->n_artifacts, ARTIFACTS_MAX);
    for (size_t i = 0; i < v->n_artifacts; i++) {
        if (check_artifact(&v->artifacts[i], err) < 0)
            return PAWL_EINPUT;
        for (size_t k = 0; k < i; k++)
            if (sv_eq(v->artifacts[k].name, v->artifacts[i].name))
                return err_set(err, PAWL_EINPUT, "two artifacts of one attempt are named " SV_FMT,
                               SV_ARG(v->artifacts[i].name));
    }
    return 0;
}

static int check_fetch(const struct fetch_record *f, struct pawl_err *err)
{
    const struct {
        struct sv text;
        const char *field;
        size_t max;
    } texts[] = {
        {f->url, "url", URL_MAX_BYTES},
        {f->final_url, "final url", URL_MAX_BYTES},
        {f->variant, "variant", NAME_MAX_BYTES},
        {f->method, "method", NAME_MAX_BYTES},
        {f->content_type, "content type", FETCH_TEXT_MAX},
        {f->encoding, "encoding", FETCH_TEXT_MAX},
        {f->etag, "etag", FETCH_TEXT_MAX},
        {f->last_modified, "last-modified", FETCH_TEXT_MAX},
        {f->headers, "headers", FETCH_TEXT_MAX},
        {f->redirects, "redirects", FETCH_TEXT_MAX},
        {f->address, "address", NAME_MAX_BYTES},
        {f->http_version, "http version", NAME_MAX_BYTES},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (check_text(texts[i].text, texts[i].field, texts[i].max, err) < 0)
            return err_wrap(err, "record of a fetch");
    if (!f->url.n)
        return err_set(err, PAWL_EINPUT, "record of a fetch: no url");
    return 0;
}

int settle_check(const struct settle *v, struct pawl_err *err)
{
    if (check_artifacts(v, err) < 0 || (v->fetch && check_fetch(v->fetch, err) < 0))
        return PAWL_EINPUT;
    if (v->fetch && v->fetch->kept && !v->n_artifacts)
        return err_set(err, PAWL_EINPUT, "record of a fetch: its body is not among the artifacts");
    return 0;
}

int memory_check(struct sv key, struct sv value, struct pawl_err *err)
{
    if (!key.n)
        return err_set(err, PAWL_EINPUT, "a key to remember by is empty");
    if (value.n > MEMORY_MAX_BYTES)
        return err_set(err, PAWL_EINPUT, "what is to be remembered is longer than %d bytes",
                       MEMORY_MAX_BYTES);
    return check_text(key, "a key to remember by", KEY_MAX_BYTES, err);
}
