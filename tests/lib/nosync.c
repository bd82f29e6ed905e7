/* Preloaded into a worker: on one device the syncs of one kind do nothing. NOSYNC_DEV is its
 * st_dev; NOSYNC is "data" (files) or "names" (folders), or "cut": files cannot be shortened, and
 * nobody is told. A test that does not notice has seen nothing. */
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

int ftruncate(int fd, off_t size)
{
    int (*f)(int, off_t) = (int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate");
    return planted(fd, "cut") ? 0 : f(fd, size);
}

/* The same under the name that a program built for large files calls it by. */
int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, (off_t)size);
}
