/* What a settle leaves behind: its artifacts, whose bytes are complete in the lake (I10), and the
 * record of its fetch. Written after the gate, in its transaction (I2, I9). */
#include "internal.h"

/* *out_id 0: there was one of that name already. */
static int write_artifact(struct sq *q, const struct settle *v, const struct artifact *a,
                          int64_t queue, int64_t *out_id, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_ARTIFACT_INSERT, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, v->id.v);
    sqlite3_bind_int64(s, 2, v->fence.v);
    sqlite3_bind_int64(s, 3, queue);
    sqlite3_bind_int64(s, 4, a->size);
    sqlite3_bind_int64(s, 5, a->stored);
    sqlite3_bind_int(s, 6, (int)a->codec);
    sqlite3_bind_int64(s, 7, q->now.us);
    sqlite3_bind_blob(s, 8, a->sha256, SHA256_LEN, SQLITE_STATIC);
    bind_sv(s, 9, a->name);
    bind_sv(s, 10, a->place);
    bind_sv(s, 11, a->type);
    int rc = stmt_run(q, s, err, "artifact");
    *out_id = rc == 0 && sqlite3_changes(q->db) ? sqlite3_last_insert_rowid(q->db) : 0;
    return rc;
}

static void bind_hash(sqlite3_stmt *s, int i, const unsigned char *hash, bool hashed)
{
    if (hashed)
        sqlite3_bind_blob(s, i, hash, SHA256_LEN, SQLITE_STATIC);
    else
        sqlite3_bind_null(s, i);
}

/* From the method on, in the order of the statement. */
static void bind_texts(sqlite3_stmt *s, int at, const struct fetch_record *f)
{
    const struct sv texts[] = {f->method,       f->variant,   f->address,       f->http_version,
                               f->content_type, f->encoding,  f->last_modified, f->etag,
                               f->url,          f->final_url, f->headers,       f->redirects};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        bind_sv(s, at + (int)i, texts[i]);
}

/* body: the row of its first artifact. */
static int write_fetch(struct sq *q, const struct settle *v, int64_t queue, int64_t body,
                       struct pawl_err *err)
{
    const struct fetch_record *f = v->fetch;
    sqlite3_stmt *s = stmt_get(q, STMT_FETCH_INSERT, err);
    if (!s)
        return err->code;
    const int64_t numbers[] = {v->id.v,   v->fence.v,       q->now.us,     queue,     f->kept,
                               f->status, f->wire_bytes,    f->body_bytes, f->dns.us, f->connect.us,
                               f->tls.us, f->first_byte.us, f->total.us};
    int at = 1;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        sqlite3_bind_int64(s, at++, numbers[i]);
    bind_hash(s, at++, f->wire_sha256, f->hashed);
    bind_hash(s, at++, f->body_sha256, f->hashed);
    bind_texts(s, at, f);
    bind_i64_or_null(s, at + 12, body, !f->kept || !body);
    return stmt_run(q, s, err, "fetch");
}

int keep_left(struct sq *q, const struct settle *v, const struct lane_entry *lane,
              struct pawl_err *err)
{
    int64_t queue = lane->cls->queue_id, body = 0, id = 0;
    for (size_t i = 0; i < v->n_artifacts; i++) {
        if (write_artifact(q, v, &v->artifacts[i], queue, &id, err) < 0)
            return err->code;
        body = i ? body : id;
    }
    return v->fetch ? write_fetch(q, v, queue, body, err) : 0;
}
