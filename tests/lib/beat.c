/* A job that shows that it lives: appends "JOB FENCE SECONDS" to a file every 5 ms, the time since
 * 1970, until the file END exists. Says its fence as result and as the key of a child job.
 * usage: beat FILE END [MILLISECONDS after which it ends anyway, if its fence is 1] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const char *job = getenv("PAWL_JOB_ID"), *fence = getenv("PAWL_FENCE");
    if (argc < 3 || !job || !fence)
        return 2;
    double end = argc > 3 && !strcmp(fence, "1") ? now() + atoi(argv[3]) / 1000.0 : 0;
    int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    dprintf(3, "{\"result\":{\"fence\":%s}}\n", fence);
    dprintf(3, "{\"job\":{\"kind\":\"noop\",\"key\":\"child of %s under %s\"}}\n", job, fence);
    while (access(argv[2], F_OK) < 0 && (end == 0 || now() < end)) {
        dprintf(fd, "%s %s %.6f\n", job, fence, now());
        usleep(5000);
    }
    return 0;
}
