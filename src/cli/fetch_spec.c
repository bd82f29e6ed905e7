/* One job of kind fetch; the payload's grammar is in src/handlers/fetch/fetch.h. */
#include "fetch_add.h"
#include "hash.h"
#include "text.h"
#include <strings.h>

static int split_header(const char *word, struct sv *name, struct sv *value, struct pawl_err *err)
{
    *name = sv_cut(sv_of(word), ':', value);
    *value = sv_trim(*value);
    if (!value->p || !text_is_word(*name, "!#$%&'*+-.^_`|~"))
        return err_set(err, PAWL_EUSAGE, "--header is '%s'; 'NAME: VALUE' is expected", word);
    for (size_t i = 0; i < value->n; i++)
        if ((unsigned char)value->p[i] < 0x20 || value->p[i] == 0x7f)
            return err_set(err, PAWL_EUSAGE, "--header " SV_FMT ": a value is one line",
                           SV_ARG(*name));
    return text_bad_utf8(*value) == value->n
               ? 0
               : err_set(err, PAWL_EUSAGE, "--header " SV_FMT ": not UTF-8", SV_ARG(*name));
}

/* Was it given before the i-th? A name once: the payload is an object. */
static bool named_before(const struct cli *c, size_t i, struct sv name)
{
    while (i-- > 0) {
        const char *word = args_nth(&c->args, "header", i);
        if (strncasecmp(word, name.p, name.n) == 0 && word[name.n] == ':')
            return true;
    }
    return false;
}

static int write_headers(const struct cli *c, struct jw *w, struct pawl_err *err)
{
    const char *word;
    if (!args_has(&c->args, "header"))
        return 0;
    jw_name(w, "headers");
    jw_object(w);
    for (size_t i = 0; (word = args_nth(&c->args, "header", i)) != NULL; i++) {
        struct sv name, value;
        AUTO_STR struct str text = STR_INIT(STR_LINE);
        if (split_header(word, &name, &value, err) < 0)
            return PAWL_EUSAGE;
        if (named_before(c, i, name))
            return err_set(err, PAWL_EUSAGE, "--header " SV_FMT " is given twice", SV_ARG(name));
        str_add(&text, name);
        jw_kstring(w, str_cstr(&text), value);
    }
    jw_end_object(w);
    return 0;
}

static int write_accept(const struct cli *c, struct jw *w, struct pawl_err *err)
{
    const char *word;
    int64_t status;
    if (!args_has(&c->args, "accept"))
        return 0;
    jw_name(w, "accept");
    jw_array(w);
    for (size_t i = 0; (word = args_nth(&c->args, "accept", i)) != NULL; i++) {
        if (sv_to_i64(sv_of(word), 100, 599, &status) < 0)
            return err_set(err, PAWL_EUSAGE, "--accept is '%s'; a status from 100 to 599", word);
        jw_int(w, status);
    }
    jw_end_array(w);
    return 0;
}

static int write_reject(const struct cli *c, struct jw *w, struct pawl_err *err)
{
    const char *word;
    if (!args_has(&c->args, "reject"))
        return 0;
    jw_name(w, "reject");
    jw_array(w);
    for (size_t i = 0; (word = args_nth(&c->args, "reject", i)) != NULL; i++) {
        if (!*word || text_bad_utf8(sv_of(word)) < strlen(word))
            return err_set(err, PAWL_EUSAGE, "--reject: a text in UTF-8 is expected");
        jw_string(w, sv_of(word));
    }
    jw_end_array(w);
    return 0;
}

static int write_rest(const struct cli *c, struct str *out, struct pawl_err *err)
{
    AUTO_STR struct str text = STR_INIT(PAYLOAD_MAX_BYTES / 2);
    struct jw w = jw_make(&text);
    jw_object(&w);
    if (write_headers(c, &w, err) < 0 || write_accept(c, &w, err) < 0 ||
        write_reject(c, &w, err) < 0)
        return PAWL_EUSAGE;
    if (args_has(&c->args, "no-robots"))
        jw_kbool(&w, "robots", false);
    jw_end_object(&w);
    if (text.overflow)
        return err_set(err, PAWL_EUSAGE, "headers and texts are too long");
    if (text.len > strlen("{}")) {
        str_addc(out, ',');
        str_add(out, sv_make(text.p + 1, text.len - 2)); /* its members without the braces */
    }
    return 0;
}

int fetch_spec_read(const struct cli *c, struct fetch_spec *out, struct pawl_err *err)
{
    int64_t priority = 0;
    const char *queue = args_get(&c->args, "queue");
    *out = (struct fetch_spec){.queue = queue ? sv_of(queue) : SV("fetch"),
                               .rest = STR_INIT(PAYLOAD_MAX_BYTES / 2)};
    if (args_int(&c->args, "priority", PRIORITY_MIN, PRIORITY_MAX, &priority, err) < 0)
        return PAWL_EUSAGE;
    out->priority = (int)priority;
    struct job_spec job = job_spec_default();
    job.queue = out->queue;
    int rc = job_spec_check(&job, err);
    return rc < 0 ? rc : write_rest(c, &out->rest, err);
}

void fetch_spec_done(struct fetch_spec *s)
{
    str_done(&s->rest);
}

static struct sv keep(struct arena *a, struct sv s)
{
    return sv_make(arena_strndup(a, s.p, s.n), s.n);
}

/* A URL that would make the key too long is named by its beginning and its hash. */
static struct sv make_key(struct sv variant, struct sv url, struct arena *a)
{
    enum { BEGINNING = 800, HEX = SHA256_LEN * 2 };
    char hex[HEX + 1];
    unsigned char hash[SHA256_LEN];
    AUTO_STR struct str key = STR_INIT(KEY_MAX_BYTES);
    str_add(&key, variant);
    str_addc(&key, ' ');
    if (key.len + url.n <= KEY_MAX_BYTES) {
        str_add(&key, url);
        return keep(a, str_sv(&key));
    }
    size_t n = BEGINNING;
    while (n && ((unsigned char)url.p[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    sha256(url, hash);
    hex_encode(hash, sizeof(hash), hex);
    str_add(&key, sv_make(url.p, n));
    str_addf(&key, "… sha256:%s", hex);
    return keep(a, str_sv(&key));
}

struct job_spec fetch_job(const struct fetch_spec *s, struct sv url, const struct variant *v,
                          const struct checked_url *asked, struct arena *a)
{
    AUTO_STR struct str payload = STR_INIT(PAYLOAD_MAX_BYTES);
    struct jw w = jw_make(&payload);
    jw_object(&w);
    jw_kstring(&w, "url", str_sv(&asked->url));
    jw_kstring(&w, "variant", v->name);
    str_add(&payload, str_sv(&s->rest));
    jw_end_object(&w);
    struct job_spec job = job_spec_default();
    job.queue = s->queue;
    job.kind = SV("fetch");
    job.key = make_key(v->name, url, a);
    job.host = keep(a, str_sv(&asked->host));
    job.payload = keep(a, str_sv(&payload));
    job.priority = s->priority;
    return job;
}
