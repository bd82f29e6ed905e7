/* Which store is tested, and where it is. */
#include "place.h"

#include "store_postgres.h"
#include "store_sqlite.h"
#include <stdio.h>
#include <sys/random.h>

bool on_postgres(void)
{
    const char *kind = getenv("PAWL_TEST_STORE");
    return kind && !strcmp(kind, "postgres");
}

int open_store(const char *path, const struct store_options *o, struct store **out,
               struct pawl_err *err)
{
    if (!on_postgres())
        return store_sqlite_open(path, o, out, err);
    const char *url = getenv("PAWL_TEST_PG_URL"), *pooled = getenv("PAWL_TEST_PG_POOLED");
    struct store_options here = *o;
    here.schema = path;
    here.log_root = getenv("TMPDIR");
    here.no_notify = here.no_prepare = pooled && *pooled;
    if (!url)
        return err_set(err, PAWL_EUSAGE, "PAWL_TEST_PG_URL is not set: see tests/lib/pgserver.py");
    return store_postgres_open(url, &here, out, err);
}

void place_name(const char *dir, const char *name, char *out, size_t size)
{
    uint64_t random = 0;
    if (!on_postgres()) {
        snprintf(out, size, "%s/%s.db", dir, name);
        return;
    }
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        abort();
    snprintf(out, size, "t_%016llx_%s", (unsigned long long)random, name);
}
