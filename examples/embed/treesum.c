/* A program with pawl inside: checksums of all files below some folders, resumable.
 *
 *   treesum URL FOLDER...          e.g. treesum sqlite:sums.db /usr/include
 *
 * One job of kind "scan" for each folder adds jobs for what is in it: "sum" for files, "scan" for
 * folders. Both are C functions here, run by a worker of this very process. Interrupt it (Ctrl-C,
 * kill -9) and start it again: it goes on where it was, and nothing is done twice. Meanwhile
 * `pawl status` on the same URL shows what it does. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pawl/pawl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the handlers share: they run on several threads. */
struct sums {
    _Atomic int64_t files, bytes;
};

/* The path is the job's key: unique in the queue, so the same folder twice is one job. */
static pawl_job job_for(const char *kind, const char *path)
{
    pawl_job job = PAWL_JOB_INIT;
    job.queue = "treesum";
    job.kind = kind;
    job.key = path;
    return job;
}

static int failed(pawl_run *run, const char *path)
{
    char text[512];
    snprintf(text, sizeof(text), "%s: %s", path, strerror(errno));
    pawl_run_error(run, text);
    return errno == ENOENT || errno == EACCES ? PAWL_FAILED : PAWL_RETRY;
}

/* Adds a child for one entry of the folder; children are stored together with this job's end. */
static void add_entry(pawl_run *run, const char *folder, const char *name)
{
    char path[1024];
    struct stat st;
    if (!strcmp(name, ".") || !strcmp(name, "..") ||
        snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
        lstat(path, &st) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
        return;
    pawl_job job = job_for(S_ISDIR(st.st_mode) ? "scan" : "sum", path);
    pawl_error err;
    if (pawl_run_add_child(run, &job, &err) < 0) /* a name that is not UTF-8, say */
        fprintf(stderr, "treesum: left out: %s\n", err.message);
}

static int scan(pawl_run *run, void *arg)
{
    const char *folder = pawl_run_lease(run)->key;
    DIR *dir = opendir(folder);
    (void)arg;
    if (!dir)
        return failed(run, folder);
    for (struct dirent *e; (e = readdir(dir));)
        add_entry(run, folder, e->d_name);
    closedir(dir);
    return PAWL_DONE;
}

/* FNV-1a: short, and good enough to see that a file changed. */
static int sum(pawl_run *run, void *arg)
{
    struct sums *sums = arg;
    const char *path = pawl_run_lease(run)->key;
    FILE *file = fopen(path, "rb");
    uint64_t hash = 14695981039346656037u;
    int64_t bytes = 0;
    if (!file)
        return failed(run, path);
    char block[16384];
    for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0; bytes += (int64_t)n) {
        for (size_t i = 0; i < n; i++)
            hash = (hash ^ (unsigned char)block[i]) * 1099511628211u;
        if (pawl_run_cancelled(run)) { /* a big file should not hold up the end */
            fclose(file);
            return PAWL_CANCELLED;
        }
    }
    fclose(file);
    char result[96];
    snprintf(result, sizeof(result), "{\"bytes\":%" PRId64 ",\"fnv\":\"%016" PRIx64 "\"}", bytes,
             hash);
    if (pawl_run_result(run, result, NULL) < 0)
        return PAWL_FAILED;
    atomic_fetch_add(&sums->files, 1);
    atomic_fetch_add(&sums->bytes, bytes);
    return PAWL_DONE;
}

static void print_metrics(void *arg, const pawl_metric *const *metrics, size_t n)
{
    (void)arg;
    printf("metrics:");
    for (size_t i = 0; i < n; i++)
        if (metrics[i]->value && metrics[i]->type == PAWL_METRIC_COUNTER)
            printf(" %s=%" PRId64, metrics[i]->name, metrics[i]->value);
        else if (metrics[i]->value)
            printf(" %s=%" PRId64 "us", metrics[i]->name, metrics[i]->sum_us / metrics[i]->value);
    printf("\n");
}

static void print_trouble(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    fprintf(stderr, "treesum: %s\n", line);
}

static pawl_worker *worker;

static void on_interrupt(int signo)
{
    (void)signo;
    pawl_worker_stop(worker); /* twice: at once */
}

/* All folders in one transaction; those that are there already are left as they are. */
static int add_folders(const char *url, char **folders, size_t n, pawl_error *err)
{
    pawl_store *store;
    pawl_job *jobs = calloc(n, sizeof(*jobs));
    pawl_added *added = calloc(n, sizeof(*added));
    int64_t new_ones = 0;
    int rc = jobs && added ? pawl_open(url, NULL, &store, err) : PAWL_ERROR_FAILED;
    for (size_t i = 0; rc == 0 && i < n; i++)
        jobs[i] = job_for("scan", folders[i]);
    if (rc == 0) {
        rc = pawl_add_many(store, jobs, n, PAWL_DUPLICATE_SKIP, added, err);
        pawl_close(store);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        new_ones += added[i].outcome == PAWL_ADD_CREATED;
    if (rc == 0)
        printf("%" PRId64 " new of %zu folders\n", new_ones, n);
    free(jobs);
    free(added);
    return rc;
}

static int work(const char *url, struct sums *sums, pawl_worker_report *report, pawl_error *err)
{
    static const char *const queues[] = {"treesum"};
    pawl_worker_options o = PAWL_WORKER_OPTIONS_INIT;
    pawl_kind_options one_at_a_time = PAWL_KIND_OPTIONS_INIT;
    o.url = url;
    o.queues = queues;
    o.n_queues = 1;
    o.slots = 4;
    o.drain = true; /* return when all is done */
    o.metrics = print_metrics;
    o.log = print_trouble;
    o.log_level = PAWL_LOG_WARN;
    one_at_a_time.slots = 1;
    int rc = pawl_worker_new(&o, &worker, err);
    if (rc == 0)
        rc = pawl_worker_handle(worker, "scan", scan, NULL, &one_at_a_time, err);
    if (rc == 0)
        rc = pawl_worker_handle(worker, "sum", sum, sums, NULL, err);
    if (rc == 0) {
        signal(SIGINT, on_interrupt);
        signal(SIGTERM, on_interrupt);
        rc = pawl_worker_run(worker, report, err);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
    pawl_worker_free(worker);
    return rc;
}

int main(int argc, char **argv)
{
    struct sums sums = {0};
    pawl_worker_report report = PAWL_WORKER_REPORT_INIT;
    pawl_error err = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: treesum URL FOLDER...\n");
        return 2;
    }
    int rc = add_folders(argv[1], argv + 2, (size_t)argc - 2, &err);
    if (rc == 0)
        rc = work(argv[1], &sums, &report, &err);
    if (rc < 0) {
        fprintf(stderr, "treesum: %s; %s\n", err.message, err.hint);
        return err.exit_status ? err.exit_status : 1;
    }
    printf("%" PRId64 " files, %" PRId64 " bytes; %" PRId64 " jobs done, %" PRId64 " failed%s\n",
           atomic_load(&sums.files), atomic_load(&sums.bytes), report.done, report.failed,
           report.drained ? "" : "; interrupted, start it again to go on");
    return report.failed ? 7 : 0;
}
