/* Preloaded into a worker: its wall clock is off by as many seconds as the file PAWL_TEST_SHIFT
 * holds (a signed 64-bit number, looked at anew each time). Clocks that only count are left alone.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("PAWL_TEST_SHIFT");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (p != MAP_FAILED)
        shift = p;
}

static int64_t off(void)
{
    return shift ? *shift : 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, t);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += off();
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    static int (*real)(struct timeval *, void *);
    if (!real)
        real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int rc = real(t, zone);
    if (rc == 0)
        t->tv_sec += off();
    return rc;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}
