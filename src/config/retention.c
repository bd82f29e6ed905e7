/* retention.queues: how long and how many finished jobs of one queue are kept. */
#include "reading.h"

#include "text.h"
#include <stdio.h>

enum { QUEUE_NAME_MAX = 255, RETENTION_MAX = 1000 };

static const char *const members[] = {"done", "failed", "max_done", "max_failed"};

static int read_age(struct reading *r, const struct yaml_node *n, struct dur *out)
{
    return reading_dur(r, n, options[OPTION_retention_done].min, options[OPTION_retention_done].max,
                       true, out);
}

static int read_value(struct reading *r, const struct yaml_node *n, struct retention_conf *x)
{
    const int64_t most = 1000000000000;
    if (sv_eq(n->name, SV("done")))
        return read_age(r, n, &x->done);
    if (sv_eq(n->name, SV("failed")))
        return read_age(r, n, &x->failed);
    if (sv_eq(n->name, SV("max_done")))
        return reading_number(r, n, 0, most, &x->max_done);
    if (sv_eq(n->name, SV("max_failed")))
        return reading_number(r, n, 0, most, &x->max_failed);
    return reading_unknown(r, n, members, ARRAY_LEN(members));
}

static int read_queue(struct reading *r, const struct yaml_node *n, struct retention_conf *x)
{
    char name[SHORT_TEXT];
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        snprintf(r->key, sizeof(r->key), "retention.queues.%s.%.*s",
                 short_text(sv_of(x->queue), name), (int)(m->name.n > 60 ? 60 : m->name.n),
                 m->name.p);
        str_clear(&r->show);
        if (read_value(r, m, x) < 0)
            return PAWL_ECONFIG;
        reading_remember(r, m, "retention of one queue");
    }
    return 0;
}

static int add_queue(struct load *l, const struct yaml_node *n)
{
    struct config *c = l->c;
    char shown[SHORT_TEXT];
    if (!n->name.n || n->name.n > QUEUE_NAME_MAX || text_bad_utf8(n->name) < n->name.n)
        return load_fail(l, n, "retention.queues", "\"%s\" is not the name of a queue",
                         short_text(n->name, shown));
    if (n->type != YAML_MAP)
        return load_fail(l, n, "retention.queues", "%s; a mapping is expected",
                         yaml_is_null(n) ? "no value" : yaml_type_name(n));
    if (c->n_retention == RETENTION_MAX)
        return load_fail(l, n, "retention.queues", "more than %d", RETENTION_MAX);
    c->retention = mem_realloc(c->retention, c->n_retention + 1, sizeof(*c->retention));
    struct retention_conf *x = &c->retention[c->n_retention++];
    *x = (struct retention_conf){mem_dup(n->name.p, n->name.n), {INT64_MIN}, {INT64_MIN}, -1, -1};
    struct reading r = {.l = l, .show = STR_INIT(STR_LINE)};
    int rc = read_queue(&r, n, x);
    str_done(&r.show);
    return rc;
}

int load_retention(struct load *l, const struct yaml_node *n)
{
    if (yaml_is_null(n))
        return 0;
    if (n->type != YAML_MAP)
        return load_fail(l, n, "retention.queues", "%s; a mapping of queues is expected",
                         yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next)
        if (add_queue(l, m) < 0)
            return PAWL_ECONFIG;
    return 0;
}

void retention_resolve(struct config *c)
{
    for (size_t i = 0; i < c->n_retention; i++) {
        struct retention_conf *x = &c->retention[i];
        x->done = x->done.us == INT64_MIN ? c->retention_done : x->done;
        x->failed = x->failed.us == INT64_MIN ? c->retention_failed : x->failed;
        x->max_done = x->max_done < 0 ? c->retention_max_done : x->max_done;
        x->max_failed = x->max_failed < 0 ? c->retention_max_failed : x->max_failed;
    }
}

void retention_clear(struct config *c)
{
    for (size_t i = 0; i < c->n_retention; i++)
        free(c->retention[i].queue);
    free(c->retention);
}
