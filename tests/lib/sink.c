/* A job that leaves a trace: appends "JOB FENCE PID" to a file, safely, once per execution.
 * usage: sink FILE [MILLISECONDS to work before] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *job = getenv("PAWL_JOB_ID"), *fence = getenv("PAWL_FENCE");
    if (argc < 2 || !job || !fence)
        return 2;
    if (argc > 2)
        usleep((unsigned)atoi(argv[2]) * 1000);
    int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0)
        return 3;
    if (dprintf(fd, "%s %s %d\n", job, fence, (int)getpid()) < 0 || fsync(fd) < 0)
        return 4;
    return 0;
}
