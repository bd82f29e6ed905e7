/* Looking at records of fetches, a page at a time. */
#include "pg.h"

enum { PAGE = 100 };

static bool read_hash(const PGresult *r, int row, int col, unsigned char out[SHA256_LEN])
{
    struct sv v = res_sv(r, row, col);
    if (v.n != SHA256_LEN)
        return false;
    memcpy(out, v.p, SHA256_LEN);
    return true;
}

static void read_fetch(const PGresult *r, int row, job_id job, struct fetch_view *out)
{
    *out = (struct fetch_view){.job = job,
                               .fence = {res_i64(r, row, 0)},
                               .at = {res_i64(r, row, 1)},
                               .artifact = res_i64(r, row, 2)};
    struct fetch_record *f = &out->f;
    struct sv *const texts[] = {&f->method,        &f->variant,      &f->address,
                                &f->http_version,  &f->content_type, &f->encoding,
                                &f->last_modified, &f->etag,         &f->url,
                                &f->final_url,     &f->headers,      &f->redirects};
    struct dur *const times[] = {&f->dns, &f->connect, &f->tls, &f->first_byte, &f->total};
    f->kept = res_int(r, row, 3);
    f->status = res_int(r, row, 4);
    f->wire_bytes = res_i64(r, row, 5);
    f->body_bytes = res_i64(r, row, 6);
    for (int i = 0; i < (int)ARRAY_LEN(times); i++)
        times[i]->us = res_i64(r, row, 7 + i);
    f->hashed = read_hash(r, row, 12, f->wire_sha256) && read_hash(r, row, 13, f->body_sha256);
    for (int i = 0; i < (int)ARRAY_LEN(texts); i++)
        *texts[i] = res_sv(r, row, 14 + i);
}

int pg_fetches(struct store *s, job_id job, bool (*each)(void *arg, const struct fetch_view *v),
               void *arg, struct pawl_err *err)
{
    for (int64_t below = INT64_MAX;;) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        args_init(&a);
        arg_i64(&a, job.v);
        arg_i64(&a, below);
        arg_int(&a, PAGE);
        int rc = pg_look(pg_of(s), STMT_FETCHES, &a, &r, err);
        if (rc < 0)
            return rc;
        for (int i = 0; i < PQntuples(r); i++) {
            struct fetch_view v;
            read_fetch(r, i, job, &v);
            below = v.fence.v;
            if (!each(arg, &v))
                return 0;
        }
        if (PQntuples(r) < PAGE)
            return 0;
    }
}

int pg_fetch_totals(struct store *s, struct wall since, struct sv queue, struct fetch_totals *out,
                    struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, since.us);
    arg_text(&a, queue);
    int rc = pg_look(pg_of(s), STMT_FETCH_TOTALS, &a, &r, err);
    if (rc == 0)
        *out = (struct fetch_totals){res_i64(r, 0, 0), res_i64(r, 0, 1), res_i64(r, 0, 2),
                                     res_i64(r, 0, 3), res_i64(r, 0, 4)};
    return rc;
}
