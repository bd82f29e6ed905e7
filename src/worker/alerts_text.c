/* What a target is sent. */
#include "alerts_internal.h"

#include "fingerprint.h"
#include "hash.h"
#include "json.h"

/* The same for every repetition of the same alert, from whichever worker. */
static void add_id(const struct alerts *a, const struct subject *s, struct str *out)
{
    unsigned char digest[SHA256_LEN];
    char hex[33];
    AUTO_STR struct str all = STR_INIT(STR_LINE);
    const char *const parts[] = {a->place, s->alert->name, s->type, s->text};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        str_adds(&all, parts[i]);
        str_addc(&all, '\0');
    }
    str_addi(&all, s->first);
    sha256(str_sv(&all), digest);
    hex_encode(digest, 16, hex);
    str_adds(out, hex);
}

static void add_time(struct jw *w, const char *name, struct wall t)
{
    AUTO_STR struct str text = STR_INIT(64);
    wall_format(t, &text);
    jw_kstring(w, name, str_sv(&text));
}

void alert_body(const struct alerts *a, const struct subject *s, struct str *out)
{
    AUTO_STR struct str id = STR_INIT(64);
    AUTO_STR struct str message = STR_INIT(STR_LINE);
    struct jw w = jw_make(out);
    add_id(a, s, &id);
    str_adds(&message, s->message);
    if (s->count > 1)
        str_addf(&message, " (%lld times)", (long long)s->count);
    jw_object(&w);
    jw_kstring(&w, "id", str_sv(&id));
    jw_kstring(&w, "alert", sv_of(s->alert->name));
    jw_kstring(&w, "type", sv_of(s->type));
    add_time(&w, "at", s->at);
    jw_kstring(&w, "subject", sv_of(s->text));
    jw_kint(&w, "count", s->count);
    jw_kstring(&w, "message", str_sv(&message));
    jw_kraw_or_null(&w, "detail", sv_of(s->detail));
    jw_kraw_or_null(&w, "sample", sv_of(s->sample));
    jw_kstring(&w, "host", sv_of(a->host));
    jw_kstring(&w, "store", sv_of(a->place));
    jw_end_object(&w);
}

void alert_sample(const struct job_view *job, struct str *out)
{
    char print[FINGERPRINT_TEXT];
    struct jw w = jw_make(out);
    const char *cls = fail_class_name(job->cls);
    struct sv error = job->error;
    if (error.n > 4 * ALERT_TEXT_MAX)
        error.n = 4 * ALERT_TEXT_MAX; /* the writer mends a character that is cut */
    fingerprint_format(job->fingerprint, print);
    jw_object(&w);
    jw_kint(&w, "id", job->id.v);
    jw_kstring(&w, "queue", job->queue);
    jw_kstring(&w, "kind", job->kind);
    jw_kstring_or_null(&w, "key", job->key);
    jw_kstring_or_null(&w, "host", job->host);
    jw_kint(&w, "attempt", job->attempt);
    jw_name(&w, "error");
    jw_object(&w);
    jw_kstring_or_null(&w, "class", sv_of(cls));
    jw_kstring_or_null(&w, "message", error);
    jw_kstring_or_null(&w, "fingerprint", job->fingerprint ? sv_of(print) : SV_NONE);
    jw_kint_or_null(&w, "exit_code", job->exit_code, job->exit_code >= 0);
    jw_end_object(&w);
    jw_end_object(&w);
}
