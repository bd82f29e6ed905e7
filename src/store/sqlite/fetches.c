/* Looking at records of fetches. */
#include "internal.h"

static bool read_hash(sqlite3_stmt *s, int i, unsigned char out[SHA256_LEN])
{
    if (sqlite3_column_bytes(s, i) != SHA256_LEN)
        return false;
    memcpy(out, sqlite3_column_blob(s, i), SHA256_LEN);
    return true;
}

/* Strings last until the next step. */
static void read_fetch(sqlite3_stmt *s, job_id job, struct fetch_view *out)
{
    *out = (struct fetch_view){.job = job,
                               .fence = {sqlite3_column_int64(s, 0)},
                               .at = {sqlite3_column_int64(s, 1)},
                               .artifact = sqlite3_column_int64(s, 2)};
    struct fetch_record *f = &out->f;
    struct sv *const texts[] = {&f->method,        &f->variant,      &f->address,
                                &f->http_version,  &f->content_type, &f->encoding,
                                &f->last_modified, &f->etag,         &f->url,
                                &f->final_url,     &f->headers,      &f->redirects};
    struct dur *const times[] = {&f->dns, &f->connect, &f->tls, &f->first_byte, &f->total};
    f->kept = sqlite3_column_int(s, 3);
    f->status = sqlite3_column_int(s, 4);
    f->wire_bytes = sqlite3_column_int64(s, 5);
    f->body_bytes = sqlite3_column_int64(s, 6);
    for (int i = 0; i < (int)ARRAY_LEN(times); i++)
        times[i]->us = sqlite3_column_int64(s, 7 + i);
    f->hashed = read_hash(s, 12, f->wire_sha256) && read_hash(s, 13, f->body_sha256);
    for (int i = 0; i < (int)ARRAY_LEN(texts); i++)
        *texts[i] = column_sv(s, 14 + i);
}

static int walk(struct sq *q, job_id job, bool (*each)(void *arg, const struct fetch_view *v),
                void *arg, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_FETCHES, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, job.v);
    int rc;
    while ((rc = stmt_step(q, s, err, "fetches")) == 1) {
        struct fetch_view v;
        read_fetch(s, job, &v);
        if (!each(arg, &v))
            return 0;
    }
    return rc;
}

int store_fetches(struct store *s, job_id job, bool (*each)(void *arg, const struct fetch_view *v),
                  void *arg, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = walk(q, job, each, arg, err);
    read_end(q);
    return rc;
}

static int read_totals(struct sq *q, struct wall since, struct sv queue, struct fetch_totals *out,
                       struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_FETCH_TOTALS, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, since.us);
    bind_sv(s, 2, queue);
    int rc = stmt_step(q, s, err, "fetches");
    if (rc == 1)
        *out = (struct fetch_totals){sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                                     sqlite3_column_int64(s, 2), sqlite3_column_int64(s, 3),
                                     sqlite3_column_int64(s, 4)};
    return rc < 0 ? rc : 0;
}

int store_fetch_totals(struct store *s, struct wall since, struct sv queue,
                       struct fetch_totals *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_totals(q, since, queue, out, err);
    read_end(q);
    return rc;
}
