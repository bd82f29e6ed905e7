/* Telling the service manager how the worker is, by systemd's protocol: datagrams to the socket
 * that NOTIFY_SOCKET names. Without the variable nothing is sent. For one thread at a time. */
#ifndef PAWL_BASE_NOTIFY_H
#define PAWL_BASE_NOTIFY_H

#include "clock.h"
#include <stdbool.h>

struct notify {
    int fd;          /* -1: nobody wants to know */
    struct dur beat; /* how often the watchdog expects to hear; us 0: never */
};

/* Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and take them out of the environment: they are
 * meant for this process, not for what it starts. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);
/* Send lines such as "READY=1\nSTATUS=…". What cannot be delivered is dropped. */
void notify_send(const struct notify *n, const char *lines);

/* Is the descriptor the journal's, by JOURNAL_STREAM? */
bool notify_is_journal(int fd);

#endif
