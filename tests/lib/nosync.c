/* Preloaded into a worker: on one device the syncs of one kind do nothing. NOSYNC_DEV is its
 * st_dev; NOSYNC is "data" (files) or "names" (folders). A test of durability that does not notice
 * has seen nothing. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int planted(int fd, const char *what)
{
    const char *dev = getenv("NOSYNC_DEV"), *which = getenv("NOSYNC");
    struct stat st;
    if (!dev || !which || strcmp(which, what) != 0 || fstat(fd, &st) < 0)
        return 0;
    return st.st_dev == strtoull(dev, NULL, 10);
}

static const char *kind(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? "names" : "data";
}

static int real(const char *name, int fd)
{
    int (*f)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return f(fd);
}

int fsync(int fd)
{
    return planted(fd, kind(fd)) ? 0 : real("fsync", fd);
}

int fdatasync(int fd)
{
    return planted(fd, kind(fd)) ? 0 : real("fdatasync", fd);
}
