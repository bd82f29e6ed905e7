/* Small helpers over file descriptors. Every descriptor pawl opens is close-on-exec. */
#ifndef PAWL_BASE_FD_H
#define PAWL_BASE_FD_H

#include "err.h"
#include "str.h"
#include <sys/types.h>
#include <unistd.h>

static inline void fd_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
#define AUTO_FD __attribute__((cleanup(fd_closep)))
#define TAKE_FD(fd)                                                                                \
    __extension__({                                                                                \
        int take_ = (fd);                                                                          \
        (fd) = -1;                                                                                 \
        take_;                                                                                     \
    })

/* All n bytes or -1 with errno; EINTR and short writes are handled. */
int fd_write_all(int fd, const void *p, size_t n);
/* Append everything up to end of file; IO on error, INPUT beyond out's ceiling. `name` is for the
 * message. */
PAWL_MUST_USE int fd_read_all(int fd, const char *name, struct str *out, struct pawl_err *err);
PAWL_MUST_USE int file_read(const char *path, struct str *out, struct pawl_err *err);

/* As many descriptors as the system lets this process have. The usual soft limit of 1024 is for
 * programs that use select(2). */
void fd_allow_many(void);

#endif
