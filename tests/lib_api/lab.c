#include "lab.h"

#include <ftw.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

bool on_postgres(void)
{
    const char *kind = getenv("PAWL_TEST_STORE");
    return kind && !strcmp(kind, "postgres");
}

/* A schema of its own. */
static int name_schema(char *out, size_t size)
{
    const char *server = getenv("PAWL_TEST_PG_URL");
    uint64_t random = 0;
    if (!server || getrandom(&random, sizeof(random), 0) != sizeof(random))
        return -1;
    return snprintf(out, size, "%s%cschema=t_%016" PRIx64, server, strchr(server, '?') ? '&' : '?',
                    random);
}

int lab_setup(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    const char *tmp = getenv("TMPDIR");
    snprintf(lab->dir, sizeof(lab->dir), "%s/pawl-lib-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(lab->dir))
        return -1;
    snprintf(lab->url, sizeof(lab->url), "sqlite:%s/a.db", lab->dir);
    snprintf(lab->other, sizeof(lab->other), "sqlite:%s/b.db", lab->dir);
    if (on_postgres() && name_schema(lab->url, sizeof(lab->url)) < 0)
        return -1;
    *state = lab;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int lab_teardown(void **state)
{
    struct lab *lab = *state;
    nftw(lab->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(lab);
    return 0;
}

pawl_store *lab_open(struct lab *lab)
{
    pawl_store *s = NULL;
    OK(pawl_open(lab->url, NULL, &s, &lab->err));
    assert_non_null(s);
    return s;
}

int64_t lab_add(struct lab *lab, pawl_store *s, const char *queue, const char *kind,
                const char *key)
{
    pawl_job job = PAWL_JOB_INIT;
    pawl_added added;
    job.queue = queue;
    job.kind = kind;
    job.key = key;
    OK(pawl_add(s, &job, PAWL_DUPLICATE_FAIL, &added, &lab->err));
    assert_int_equal(added.outcome, PAWL_ADD_CREATED);
    return added.id;
}

int lab_state(struct lab *lab, pawl_store *s, int64_t id)
{
    pawl_job_info *job;
    OK(pawl_job_get(s, id, &job, &lab->err));
    int state = job->state;
    pawl_job_free(job);
    return state;
}

void lab_fill(struct lab *lab, const char *url, const char *kind, int n)
{
    pawl_store *s;
    pawl_job *jobs = calloc((size_t)n, sizeof(*jobs));
    for (int i = 0; i < n; i++) {
        jobs[i].size = sizeof(jobs[i]);
        jobs[i].kind = kind;
    }
    OK(pawl_open(url, NULL, &s, &lab->err));
    OK(pawl_add_many(s, jobs, (size_t)n, PAWL_DUPLICATE_SKIP, NULL, &lab->err));
    pawl_close(s);
    free(jobs);
}

pawl_counts lab_count(struct lab *lab, pawl_store *s)
{
    pawl_counts c = PAWL_COUNTS_INIT;
    OK(pawl_count(s, NULL, NULL, &c, &lab->err));
    return c;
}
