/* The steps of a copy: begin, rows in the order of their keys, compare, finish. Where it stands is
 * known from the target alone, so it may end at any time and go on. */
#include "copying.h"

#include "fd.h"
#include "text.h"
#include <stdio.h>
#include <unistd.h>

void copying_done(struct copying *k)
{
    for (int t = 0; t < N_COPY_TABLES; t++)
        str_done(&k->tables[t].first);
    store_close(k->from);
    store_close(k->to);
}

/* ---- progress ---- */

/* A line that changes five times a second on a terminal, else one every 10 s, later every 60 s. */
static void progress(struct copying *k, const char *doing, enum copy_table t, int64_t rows)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    bool bar = k->c->talk;
    struct boot now = clock_boot();
    int64_t so_far = now.us - k->start.us;
    int64_t pause_ms = bar ? 200 : so_far < DUR_S(600).us ? 10000 : 60000;
    k->rows += rows;
    if (k->c->quiet || now.us - k->said.us < pause_ms * 1000)
        return;
    k->said = now;
    str_addf(&s, "%s%s %s: %lld rows in all, %.0f/s%s", bar ? "\r\033[K" : "", doing,
             copy_shapes[t].name, (long long)k->rows, (double)k->rows * 1e6 / (double)(so_far + 1),
             bar ? "" : "\n");
    if (fd_write_all(STDERR_FILENO, s.p, s.len) < 0)
        return; /* progress is a courtesy */
}

static void end_progress(const struct copying *k)
{
    if (k->c->talk && !k->c->quiet && k->said.us != k->start.us)
        fputs("\r\033[K", stderr);
}

/* ---- may it begin? ---- */

static int refuse_running(const struct copying *k, struct pawl_err *err)
{
    err_set(err, PAWL_ECONFLICT, "%s: %lld job%s running, and the worker lives", k->from_name,
            (long long)k->facts.held, k->facts.held == 1 ? " is" : "s are");
    return err_hint(err,
                    "end the workers first ('pawl workers stop --all'); --force copies them as "
                    "queued, and they may run twice");
}

static int refuse_begin(const struct copying *k, enum copy_begun why, struct pawl_err *err)
{
    switch (why) {
    case COPY_NOT_EMPTY:
        err_set(err, PAWL_ECONFLICT, "%s is not empty", k->to_name);
        return err_hint(
            err, "name a new store; --verify compares, --replace deletes what it holds first");
    case COPY_IN_USE:
        err_set(err, PAWL_ECONFLICT, "%s: workers are running there", k->to_name);
        return err_hint(err, "end them first");
    case COPY_OTHER:
        err_set(err, PAWL_ECONFLICT, "%s: a copy from another store is not finished", k->to_name);
        return err_hint(err, "--replace deletes what has arrived and begins with this one");
    default:
        err_set(err, PAWL_ECONFLICT, "%s has changed since the copy began", k->from_name);
        return err_hint(err, "--replace begins anew");
    }
}

static int begin(struct copying *k, struct pawl_err *err)
{
    struct copy_facts target;
    struct copy_begin how = {.source = &k->facts, .replace = k->replace};
    enum copy_begun begun;
    int rc = k->to->ops->copy->facts(k->to, &target, err);
    if (rc < 0)
        return rc;
    if (!strcmp(target.id, k->facts.id)) {
        err_set(err, PAWL_ECONFLICT,
                "%s and %s are the same store, or one is a backup of the other", k->from_name,
                k->to_name);
        return err_hint(err, "name another target");
    }
    rc = k->to->ops->copy->begin(k->to, &how, &begun, err);
    if (rc < 0)
        return rc;
    k->resumed = begun == COPY_RESUMED;
    k->begun = begun == COPY_BEGUN || k->resumed;
    return k->begun ? 0 : refuse_begin(k, begun, err);
}

/* ---- rows ---- */

/* Pages of one table of one store, row by row. */
struct reader {
    struct store *store;
    enum copy_table table;
    struct arena arena;
    struct copy_value after[COPY_KEYS_MAX];
    struct copy_rows page;
    size_t at;
};

static void reader_init(struct reader *r, struct store *s, enum copy_table t)
{
    *r = (struct reader){.store = s, .table = t};
    arena_init(&r->arena);
    copy_first_key(t, r->after);
}

static void reader_done(struct reader *r)
{
    arena_done(&r->arena);
}

/* The page behind the one before; n 0 at the end. */
static int next_page(struct reader *r, struct pawl_err *err)
{
    struct arena old = r->arena;
    size_t n = r->page.n;
    arena_init(&r->arena);
    if (n)
        copy_key_keep(r->table, copy_row(r->table, &r->page, n - 1), &r->arena, r->after);
    r->page.n = r->at = 0;
    int rc = r->store->ops->copy->read(r->store, r->table, r->after, &r->arena, &r->page, err);
    arena_done(&old);
    return rc;
}

/* *out NULL at the end. */
static int next_row(struct reader *r, const struct copy_value **out, struct pawl_err *err)
{
    int rc = r->at == r->page.n ? next_page(r, err) : 0;
    if (rc == 0)
        *out = r->at < r->page.n ? copy_row(r->table, &r->page, r->at++) : NULL;
    return rc;
}

static int move_table(struct copying *k, enum copy_table t, struct pawl_err *err)
{
    AUTO(reader_done) struct reader r;
    bool any;
    reader_init(&r, k->from, t);
    int rc = k->to->ops->copy->last(k->to, t, &r.arena, r.after, &any, err);
    while (rc == 0 && !cli_signal()) {
        rc = next_page(&r, err);
        if (rc < 0 || !r.page.n)
            return rc;
        rc = k->to->ops->copy->write(k->to, t, &r.page, err);
        progress(k, "copying", t, (int64_t)r.page.n);
    }
    return rc;
}

static int move_all(struct copying *k, struct pawl_err *err)
{
    int rc = k->facts.held && !k->force ? refuse_running(k, err) : begin(k, err);
    for (int t = 0; rc == 0 && t < N_COPY_TABLES && !cli_signal(); t++)
        rc = move_table(k, (enum copy_table)t, err);
    return rc;
}

/* ---- comparing ---- */

static void note_difference(struct compared *d, enum copy_table t, const struct copy_value *from,
                            const struct copy_value *to)
{
    AUTO_STR struct str key = STR_INIT(STR_LINE);
    int column = from && to ? copy_row_differs(t, from, to) : 0;
    if (d->first.len || column < 0)
        return;
    copy_key_text(t, from ? from : to, &key);
    text_safe(&d->first, str_sv(&key), 0);
    if (!from || !to)
        str_adds(&d->first, from ? ": missing" : ": too many");
    else if (column < copy_shapes[t].n_keys)
        str_adds(&d->first, ": missing, or too many before it");
    else
        str_addf(&d->first, ": " SV_FMT, SV_ARG(copy_column(t, column)));
}

static int compare_table(struct copying *k, enum copy_table t, struct str *scratch,
                         struct pawl_err *err)
{
    AUTO(reader_done) struct reader a;
    AUTO(reader_done) struct reader b;
    struct compared *d = &k->tables[t];
    reader_init(&a, k->from, t);
    reader_init(&b, k->to, t);
    d->first = STR_INIT(STR_LINE);
    while (!cli_signal()) {
        const struct copy_value *from = NULL, *to = NULL;
        int rc = next_row(&a, &from, err);
        if (rc == 0)
            rc = next_row(&b, &to, err);
        if (rc < 0 || (!from && !to))
            return rc;
        if (from)
            copy_sum_add(&d->source, t, from, scratch);
        if (to)
            copy_sum_add(&d->target, t, to, scratch);
        note_difference(d, t, from, to);
        progress(k, "comparing", t, 1);
    }
    return 0;
}

static int compare_tables(struct copying *k, struct pawl_err *err)
{
    AUTO_STR struct str scratch = STR_INIT(STR_OUTPUT);
    int rc = 0;
    k->equal = true;
    for (int t = 0; rc == 0 && t < N_COPY_TABLES; t++) {
        rc = compare_table(k, (enum copy_table)t, &scratch, err);
        k->equal &= copy_sum_eq(&k->tables[t].source, &k->tables[t].target);
    }
    return rc;
}

static int compare_all(struct copying *k, struct pawl_err *err)
{
    int rc = k->to->ops->copy->read_begin(k->to, err);
    if (rc < 0)
        return rc;
    rc = compare_tables(k, err);
    k->to->ops->copy->read_end(k->to);
    return rc;
}

static int in_snapshot(struct copying *k, bool compare_only, struct pawl_err *err)
{
    int rc = k->from->ops->copy->facts(k->from, &k->facts, err);
    if (rc == 0 && !compare_only)
        rc = move_all(k, err);
    return rc == 0 && !cli_signal() ? compare_all(k, err) : rc;
}

int copying_run(struct copying *k, bool compare_only, bool *out_stopped, struct pawl_err *err)
{
    k->start = k->said = clock_boot();
    int rc = k->from->ops->copy->read_begin(k->from, err);
    if (rc < 0)
        return rc;
    rc = in_snapshot(k, compare_only, err);
    k->from->ops->copy->read_end(k->from);
    end_progress(k);
    *out_stopped = cli_signal() != 0;
    return rc;
}

/* ---- the end ---- */

int copying_finish(struct copying *k, struct pawl_err *err)
{
    struct copy_facts now;
    int rc = k->from->ops->copy->facts(k->from, &now, err);
    if (rc < 0)
        return rc;
    if (strcmp(now.stamp, k->facts.stamp) != 0 && !k->force) {
        err_set(err, PAWL_ECONFLICT, "%s has changed while it was copied", k->from_name);
        return err_hint(err, "end what uses it and copy again with --replace");
    }
    int64_t next = now.next_job > k->facts.next_job ? now.next_job : k->facts.next_job;
    return k->to->ops->copy->finish(k->to, next, &k->released, err);
}
