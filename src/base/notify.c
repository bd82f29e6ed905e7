/* The notification protocol by hand: it is a datagram, and libsystemd is not worth linking for it.
 */
#include "notify.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void notify_close(struct notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

void notify_send(const struct notify *n, const char *lines)
{
    if (n->fd >= 0)
        (void)send(n->fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT);
}
