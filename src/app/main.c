#include "app.h"

#include "store_sqlite.h"
#include "stores.h"

int main(int argc, char **argv)
{
    static const struct cli_app app = {
        .open_store = stores_open,
        .kinds = app_kinds,
        .n_kinds = APP_KINDS,
        .check_new = app_check_new,
        .check = app_check,
        .host = app_host,
        .check_free = app_check_free,
        .run_worker = app_run_worker,
        .migration_sql = stores_migration_sql,
        .scratch_new = stores_scratch_new,
        .scratch_free = stores_scratch_free,
    };
    store_sqlite_process_init();
    return cli_main(&app, argc, argv);
}
