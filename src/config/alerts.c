/* alerts: who is told of what. Members come from alerts.def, topics from alert_topics.def. */
#include "reading.h"

#include "json.h"
#include "text.h"
#include <stdio.h>

enum { ALERT_NAME_MAX = 255, ALERTS_MAX = 100 };

/* One alert being read. */
struct reading_alert {
    struct reading r; /* first: readers get it */
    struct alert_conf *alert;
};

static const char *const topics[] = {
#define X(name, text, doc) text,
#include "alert_topics.def"
#undef X
};

static struct alert_conf *alert_of(struct reading *r)
{
    return ((struct reading_alert *)r)->alert;
}

static int read_name(struct reading *r, const struct yaml_node *n)
{
    struct alert_conf *a = alert_of(r);
    char shown[SHORT_TEXT];
    if (reading_text(r, n, "a name", &a->name) < 0)
        return PAWL_ECONFIG;
    bool bad = strlen(a->name) > ALERT_NAME_MAX;
    for (const char *c = a->name; *c; c++)
        bad = bad || (unsigned char)*c < 0x20 || *c == 0x7f;
    if (bad)
        return load_fail(r->l, n, r->key, "\"%s\" is not a name",
                         short_text(sv_of(a->name), shown));
    for (const struct alert_conf *other = r->l->c->alerts; other != a; other++)
        if (!strcmp(other->name, a->name))
            return load_fail(r->l, n, "alerts", "\"%s\" twice; first at %s",
                             short_text(sv_of(a->name), shown), other->origin);
    return 0;
}

static int add_topic(struct reading *r, const struct yaml_node *n, const char *name)
{
    char shown[SHORT_TEXT];
    for (size_t i = 0; i < N_ALERT_TOPICS; i++)
        if (!strcmp(name, topics[i])) {
            alert_of(r)->on |= 1u << i;
            return 0;
        }
    const char *near = sv_nearest(sv_of(name), topics, N_ALERT_TOPICS);
    return load_fail(r->l, n, r->key, "no alert is about \"%s\"%s%s%s",
                     short_text(sv_of(name), shown), near ? "; did you mean \"" : "",
                     near ? near : "", near ? "\"?" : "");
}

static int read_on(struct reading *r, const struct yaml_node *n)
{
    struct string_list names = {0};
    int rc = reading_texts(r, n, &names);
    if (rc == 0 && !names.n)
        rc = load_fail(r->l, n, r->key, "the list is empty");
    for (size_t i = 0; i < names.n && rc == 0; i++)
        rc = add_topic(r, n, names.v[i]);
    string_list_clear(&names);
    return rc;
}

static int read_command(struct reading *r, const struct yaml_node *n)
{
    struct alert_conf *a = alert_of(r);
    if (reading_texts(r, n, &a->command) < 0)
        return PAWL_ECONFIG;
    if (!a->command.n)
        return load_fail(r->l, n, r->key, "the list is empty; program and arguments are expected");
    if (!a->command.v[0][0])
        return load_fail(r->l, n, r->key, "the program's name is empty");
    return 0;
}

static int read_url(struct reading *r, const struct yaml_node *n)
{
    return reading_url(r, n, &alert_of(r)->url);
}

static int read_secret(struct reading *r, const struct yaml_node *n)
{
    return reading_secret(r, n, &alert_of(r)->secret);
}

static int read_every(struct reading *r, const struct yaml_node *n)
{
    return reading_dur(r, n, "1s", "1d", false, &alert_of(r)->every);
}

static int read_failure_rate(struct reading *r, const struct yaml_node *n)
{
    struct file_text v;
    int64_t percent;
    char shown[SHORT_TEXT];
    if (reading_scalar(r, n, "a percentage", &v) < 0)
        return PAWL_ECONFIG;
    struct sv number = v.text;
    if (number.n && number.p[number.n - 1] == '%')
        number.n--;
    if (sv_to_i64(number, 1, 100, &percent) < 0)
        return load_fail(r->l, n, r->key, "\"%s\" is not a percentage; 1%% to 100%% is allowed",
                         short_text(reading_masked(&v), shown));
    alert_of(r)->failure_rate = (int)percent;
    str_addf(&r->show, "%d%%", (int)percent);
    return 0;
}

static int read_min_jobs(struct reading *r, const struct yaml_node *n)
{
    return reading_number(r, n, 1, 1000000000, &alert_of(r)->min_jobs);
}

static const struct alert_key {
    const char *name;
    int (*read)(struct reading *r, const struct yaml_node *n);
    const char *doc;
} alert_keys[] = {
#define KEY(name_, read_, type_, bounds_, doc_) {#name_, read_, doc_},
#include "alerts.def"
#undef KEY
};

static int read_member(struct reading *r, const struct yaml_node *n)
{
    const struct alert_conf *a = alert_of(r);
    const char *names[ARRAY_LEN(alert_keys)];
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "alerts.%s.%.*s",
             a->name ? short_text(sv_of(a->name), name) : "?",
             (int)(n->name.n > 60 ? 60 : n->name.n), n->name.p);
    str_clear(&r->show);
    for (size_t i = 0; i < ARRAY_LEN(alert_keys); i++) {
        names[i] = alert_keys[i].name;
        if (!sv_eq(n->name, sv_of(alert_keys[i].name)))
            continue;
        if (alert_keys[i].read(r, n) < 0)
            return PAWL_ECONFIG;
        if (alert_keys[i].read != read_name)
            reading_remember(r, n, alert_keys[i].doc);
        return 0;
    }
    return reading_unknown(r, n, names, ARRAY_LEN(alert_keys));
}

/* Members that have no effect together are mistakes. */
static int finish_alert(struct reading *r, const struct yaml_node *n)
{
    struct alert_conf *a = alert_of(r);
    char name[SHORT_TEXT];
    bool rate = a->on & 1u << ALERT_FAILURE_RATE;
    const char *wrong = !a->on                     ? "on is missing"
                        : !a->command.n && !a->url ? "command or url is missing"
                        : a->command.n && a->url   ? "command or url, not both"
                        : a->secret && !a->url     ? "secret has no effect without url"
                        : !rate && a->failure_rate ? "failure_rate has no effect unless it is in on"
                        : !rate && a->min_jobs     ? "min_jobs has no effect without failure_rate"
                                                   : NULL;
    snprintf(r->key, sizeof(r->key), "alerts.%s", short_text(sv_of(a->name), name));
    if (wrong)
        return load_fail(r->l, n, r->key, "%s", wrong);
    if (!a->failure_rate)
        a->failure_rate = 20;
    if (!a->min_jobs)
        a->min_jobs = 50;
    return 0;
}

static int read_alert(struct load *l, const struct yaml_node *n)
{
    struct config *c = l->c;
    if (reading_entry(l, n, "alerts", c->n_alerts, ALERTS_MAX) < 0)
        return PAWL_ECONFIG;
    c->alerts = mem_realloc(c->alerts, c->n_alerts + 1, sizeof(*c->alerts));
    struct alert_conf *a = &c->alerts[c->n_alerts++];
    *a = (struct alert_conf){.origin = load_origin(l, n), .every = DUR_S(60)};
    struct reading_alert one = {.r = {.l = l, .show = STR_INIT(1 << 20)}, .alert = a};
    int rc = reading_members(&one.r, n, "alerts", read_member);
    if (rc == 0)
        rc = finish_alert(&one.r, n);
    str_done(&one.r.show);
    return rc;
}

int load_alerts(struct load *l, const struct yaml_node *n)
{
    if (yaml_is_null(n))
        return 0;
    if (n->type != YAML_LIST)
        return load_fail(l, n, "alerts", "%s; a list of mappings is expected", yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next)
        if (read_alert(l, m) < 0)
            return PAWL_ECONFIG;
    return 0;
}

void alerts_clear(struct config *c)
{
    for (size_t i = 0; i < c->n_alerts; i++) {
        struct alert_conf *a = &c->alerts[i];
        free(a->origin);
        free(a->name);
        free(a->url);
        free(a->secret);
        string_list_clear(&a->command);
    }
    free(c->alerts);
    c->alerts = NULL;
    c->n_alerts = 0;
}
