/* Records for who takes artifacts elsewhere, one member of gzip each, made as they are given out.
 */
#include "pack.h"

#include "mem.h"

struct giving {
    struct gzip_out *gzip;
    bool (*each)(void *arg, struct sv bytes);
    void *arg;
    bool enough;
    int rc;
    struct pawl_err *err;
};

static int give(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct giving *g = arg;
    g->enough = g->enough || !g->each(g->arg, bytes);
    return g->enough ? err_set(err, PAWL_EIO, "nobody takes the records") : 0;
}

static bool pass(void *arg, struct sv bytes)
{
    struct giving *g = arg;
    g->rc = gzip_write(g->gzip, bytes, g->err);
    return g->rc == 0;
}

static int begin(struct giving *g, const struct warc_record *r, bool squeeze, struct pawl_err *err)
{
    AUTO_STR struct str head = STR_INIT(RECORD_ROOM);
    warc_head(r, &head);
    gzip_begin(g->gzip, (int64_t)head.len + r->length + 4, squeeze);
    return gzip_write(g->gzip, str_sv(&head), err);
}

static int end(struct giving *g, struct pawl_err *err)
{
    int rc = gzip_write(g->gzip, SV("\r\n\r\n"), err);
    return rc < 0 ? rc : gzip_end(g->gzip, err);
}

static int put_info(struct giving *g, struct pawl_err *err)
{
    char id[RECORD_ID];
    unsigned char sum[SHA256_LEN];
    struct warc_record r;
    struct record_ids ids = {0};
    struct sv block = warc_info(&ids, id, sum, &r);
    int rc = begin(g, &r, false, err);
    if (rc == 0)
        rc = gzip_write(g->gzip, block, err);
    return rc < 0 ? rc : end(g, err);
}

int lake_warc_info(bool (*each)(void *arg, struct sv bytes), void *arg, struct pawl_err *err)
{
    struct giving g = {.each = each, .arg = arg};
    g.gzip = gzip_out_new(1, give, &g);
    int rc = put_info(&g, err);
    gzip_out_free(g.gzip);
    return g.enough ? 0 : rc;
}

static int put_resource(struct lake *l, struct giving *g, const struct artifact *a,
                        const struct exchange *from, struct pawl_err *err)
{
    char id[RECORD_ID];
    record_id_new(&l->ids, id);
    const struct warc_record r = {.type = "resource",
                                  .id = id,
                                  .uri = from->uri,
                                  .at = from->at,
                                  .content_type = a->type,
                                  .block = a->sha256,
                                  .payload = a->sha256,
                                  .length = a->size};
    const struct lake_item item = {.type = a->type, .size = a->size};
    g->err = err;
    int rc = begin(g, &r, pending_squeezes(l, &item), err);
    if (rc == 0)
        rc = lake_read(l, a, pass, g, err);
    if (rc == 0)
        rc = g->rc;
    return rc < 0 ? rc : end(g, err);
}

int lake_warc_record(struct lake *l, const struct artifact *a, const struct exchange *from,
                     bool (*each)(void *arg, struct sv bytes), void *arg, struct pawl_err *err)
{
    struct giving g = {.each = each, .arg = arg};
    g.gzip = gzip_out_new(l->level < 1 ? 1 : l->level > 9 ? 9 : l->level, give, &g);
    int rc = put_resource(l, &g, a, from, err);
    gzip_out_free(g.gzip);
    return g.enough ? 0 : rc;
}
