/* Where `pawl each` keeps its jobs: the store that is there or was named, else one of its own in
 * the state folder, which goes when everything ended well. */
#include "each.h"

#include "fd.h"
#include "hash.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { SETTLE_MS = 3000, PAUSE_MS = 10, ACT_BATCH = 2000, SWEEP_JOBS = 1000 };

static bool store_is_named(const struct cli *c)
{
    const char *env = getenv("PAWL_STORE");
    return args_has(&c->args, "store") || (env && *env) ||
           strcmp(c->config->store, "sqlite:pawl.db") != 0 || access("pawl.db", F_OK) == 0;
}

/* $XDG_STATE_HOME/pawl/each-HASH; the name holds the line, the folder and a store that was named.
 */
static int name_folder(struct each_place *p, const struct cli *c, const struct each_template *t,
                       struct pawl_err *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const char *queue = args_get(&c->args, "queue");
    AUTO_STR struct str all = STR_INIT(STR_LINE);
    unsigned char digest[SHA256_LEN];
    char hex[2 * EACH_HASH + 1];
    p->folder = STR_INIT(4096);
    if (state && state[0] == '/')
        str_addf(&p->folder, "%s/pawl", state);
    else if (home && home[0] == '/')
        str_addf(&p->folder, "%s/.local/state/pawl", home);
    else
        return err_set(err, PAWL_EUNREACHABLE, "neither XDG_STATE_HOME nor HOME names a folder");
    str_addf(&all, "%s%c%s%c%s", t->hash, 0, p->private_store ? "" : c->config->store, 0,
             queue ? queue : "");
    sha256(str_sv(&all), digest);
    hex_encode(digest, EACH_HASH / 2, hex);
    str_addf(&p->folder, "/each-%s", hex);
    return 0;
}

static int make_folders(const char *path, struct pawl_err *err)
{
    AUTO_FREE char *part = mem_strdup(path);
    for (char *at = strchr(part + 1, '/');; at = strchr(at + 1, '/')) {
        if (at)
            *at = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot make the folder %s", part);
        if (!at)
            return 0;
        *at = '/';
    }
}

/* Locked, and still the one the name leads to: whoever ended well has removed it. */
static bool is_current(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

static int lock_folder(struct each_place *p, struct pawl_err *err)
{
    const char *path = str_cstr(&p->folder);
    for (;;) {
        int rc = make_folders(path, err);
        if (rc < 0)
            return rc;
        AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0)
            return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot open %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            err_set(err, PAWL_ECONFLICT, "the same command is running in this folder already");
            return err_hint(err, "--queue NAME gives this one a queue of its own");
        }
        if (!is_current(fd, path))
            continue;
        p->lock_fd = TAKE_FD(fd);
        return 0;
    }
}

/* All output is wanted, and how often to try is said by the line alone. */
static int configure(struct each_place *p, struct cli *c, int64_t attempts, struct pawl_err *err)
{
    AUTO_STR struct str store = STR_INIT(STR_LINE);
    char tries[64];
    const char *flags[] = {"log.head=1GiB", tries, NULL};
    snprintf(tries, sizeof(tries), "retry.transient_max_attempts=%lld", (long long)attempts);
    if (p->private_store) {
        str_addf(&store, "store=sqlite:%s/pawl.db", str_cstr(&p->folder));
        flags[2] = str_cstr(&store);
    }
    return cli_config(c, flags, p->private_store ? 3 : 2, err);
}

static void say_place(const struct each_place *p, const struct cli *c)
{
    AUTO_STR struct str url = STR_INIT(STR_LINE);
    text_url(&url, sv_of(c->config->store));
    cli_say(c, "pawl: jobs are kept in %s%s", str_cstr(&url),
            p->private_store ? " until all are done" : "");
}

int each_place_init(struct each_place *p, struct cli *c, const struct each_template *t,
                    int64_t attempts, struct pawl_err *err)
{
    *p = (struct each_place){.lock_fd = -1};
    int rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    p->private_store = !store_is_named(c);
    rc = name_folder(p, c, t, err);
    if (rc == 0)
        rc = lock_folder(p, err);
    if (rc == 0)
        rc = configure(p, c, attempts, err);
    if (rc == 0)
        say_place(p, c);
    return rc;
}

void each_place_done(struct each_place *p, struct cli *c, bool remove)
{
    if (p->lock_fd >= 0 && p->private_store && remove)
        c->app->scratch_free(c->config, c->config->store);
    else if (p->lock_fd >= 0)
        rmdir(str_cstr(&p->folder)); /* fails where a store is in it: as it should */
    fd_closep(&p->lock_fd);
    str_done(&p->folder);
}

/* ---- what an earlier run left ---- */

static int sweep(struct cli *c, struct store *store, struct pawl_err *err)
{
    struct sweep_request q = {
        .max_sessions = 16, .max_jobs = SWEEP_JOBS, .max_lost = (int)c->config->retry_max_lost};
    struct sweep_result r = {.more = true};
    int rc = 0;
    while (rc == 0 && r.more)
        rc = store->ops->sweep(store, &q, &r, err);
    return rc;
}

/* Jobs of a killed run: its supervisors need a moment to end, then the sweep gives them back. What
 * still runs after that has a live worker. */
static int take_back(struct cli *c, struct store *store, struct sv queue, struct pawl_err *err)
{
    struct selection running = {.queue = queue, .states = 1u << JOB_RUNNING};
    struct boot start = clock_boot();
    for (int64_t n = 1; n;) {
        int rc = sweep(c, store, err);
        if (rc == 0)
            rc = store->ops->count(store, &running, &n, err);
        if (rc < 0)
            return rc;
        if (clock_boot().us - start.us > DUR_MS(SETTLE_MS).us)
            return 0;
        if (n)
            poll(NULL, 0, PAUSE_MS);
    }
    return 0;
}

static int cancel_left(struct store *store, struct sv queue, struct pawl_err *err)
{
    struct act_request q = {
        .act = ACT_CANCEL,
        .select = {.queue = queue, .states = 1u << JOB_QUEUED | 1u << JOB_WAITING},
        .max = ACT_BATCH};
    struct act_result r = {.more = true};
    int rc = 0;
    while (rc == 0 && r.more) {
        rc = store->ops->act(store, &q, &r, err);
        q.select.after = r.cursor;
    }
    return rc;
}

int each_place_clear(struct cli *c, struct sv queue, struct pawl_err *err)
{
    AUTO_STORE struct store *store = NULL;
    int rc = c->app->open_store(c->config, STORE_CREATE, &store, err);
    if (rc == 0)
        rc = take_back(c, store, queue, err);
    return rc < 0 ? rc : cancel_left(store, queue, err);
}
