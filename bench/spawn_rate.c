/* Spawn rate: N runs of /bin/true, P at a time, through zygote and supervisors, beside
 * `xargs -P` doing the same. Not a test: prints both rates and their ratio.
 * usage: spawn_rate [N [P]] */
#include "mem.h"
#include "process.h"
#include <stdio.h>
#include <stdlib.h>

struct bench {
    struct zygote *zygote;
    struct loop *loop;
    int left, running;
};

static void spawn_one(struct bench *b);

static void on_exit_report(void *arg, const struct process_report *r)
{
    struct bench *b = arg;
    if (r->exit_code != 0) {
        fprintf(stderr, "spawn_rate: a process failed\n");
        exit(1);
    }
    b->running--;
    if (b->left)
        spawn_one(b);
    else if (!b->running)
        loop_stop(b->loop);
}

static void spawn_one(struct bench *b)
{
    static const char *const argv[] = {"/bin/true", NULL}, *const env[] = {"PATH=/bin", NULL};
    struct process_spec spec = {.argv = argv, .env = env, .log_dir = -1, .no_new_privs = true};
    struct process_events events = {.on_exit = on_exit_report, .arg = b};
    struct process *p;
    struct pawl_err err = {0};
    if (process_spawn(b->zygote, b->loop, &spec, &events, &p, &err) < 0) {
        fprintf(stderr, "spawn_rate: %s\n", err.msg);
        exit(1);
    }
    b->left--;
    b->running++;
}

static double pawl_rate(struct bench *b, int n, int parallel)
{
    struct pawl_err err = {0};
    struct boot start = clock_boot();
    b->left = n;
    for (int i = 0; i < parallel && b->left; i++)
        spawn_one(b);
    if (loop_run(b->loop, &err) < 0)
        exit(1);
    return n / ((double)(clock_boot().us - start.us) / 1e6);
}

static double xargs_rate(int n, int parallel)
{
    char command[128];
    snprintf(command, sizeof(command), "seq %d | xargs -n1 -P%d /bin/true", n, parallel);
    struct boot start = clock_boot();
    if (system(command) != 0)
        exit(1);
    return n / ((double)(clock_boot().us - start.us) / 1e6);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000, parallel = argc > 2 ? atoi(argv[2]) : 2;
    struct bench b = {0};
    struct pawl_err err = {0};
    if (zygote_start(&b.zygote, &err) < 0 || loop_new(&b.loop, &err) < 0) {
        fprintf(stderr, "spawn_rate: %s\n", err.msg);
        return 1;
    }
    for (int round = 0; round < 3; round++) {
        double ours = pawl_rate(&b, n, parallel), theirs = xargs_rate(n, parallel);
        printf("%d at a time: pawl %.0f/s, xargs %.0f/s, ratio %.2f\n", parallel, ours, theirs,
               ours / theirs);
    }
    zygote_stop(b.zygote);
    loop_free(b.loop);
    return 0;
}
