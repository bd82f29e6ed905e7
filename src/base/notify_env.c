/* What the service manager says in the environment. Apart from the sending, so that a library which
 * may only send has nothing that touches the environment. */
#include "notify.h"

#include "str.h"
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* "/path" or "@abstract". */
static int connect_to(const char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || n < 2 || n >= sizeof(to.sun_path))
        return -1;
    memcpy(to.sun_path, name, n);
    if (name[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, size) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Half of what the watchdog allows, so that one late beat does no harm. */
static struct dur read_beat(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us, owner;
    if (!usec || sv_to_i64(sv_of(usec), 2, INT64_MAX / 2, &us) < 0)
        return DUR_US(0);
    if (pid && (sv_to_i64(sv_of(pid), 1, INT32_MAX, &owner) < 0 || owner != getpid()))
        return DUR_US(0);
    return DUR_US(us / 2);
}

void notify_open(struct notify *n)
{
    const char *name = getenv("NOTIFY_SOCKET");
    n->fd = name ? connect_to(name) : -1;
    n->beat = n->fd >= 0 ? read_beat() : DUR_US(0);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

bool notify_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    struct sv inode, device = sv_cut(sv_of(stream), ':', &inode);
    int64_t dev, ino;
    return stream && sv_to_i64(device, 0, INT64_MAX, &dev) == 0 && inode.p &&
           sv_to_i64(inode, 0, INT64_MAX, &ino) == 0 && fstat(fd, &st) == 0 &&
           (int64_t)st.st_dev == dev && (int64_t)st.st_ino == ino;
}
