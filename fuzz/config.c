/* Any bytes as a configuration file. A refusal names the file; what is accepted can be shown. */
#include "fuzz.h"

#include "config.h"
#include "fd.h"
#include "mem.h"
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>

static void each(void *arg, const struct config_value *v)
{
    (void)arg;
    assert(v->key && v->value && v->origin && v->doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FD int fd = memfd_create("config", MFD_CLOEXEC);
    struct config *c = NULL;
    struct pawl_err err = {0};
    char path[64];
    static const char *const flags[] = {"secrets_dir=/nonexistent"};
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (config_load(path, NULL, flags, 1, &c, &err) < 0) {
        assert(!c && err.code == PAWL_ECONFIG && err.msg[0]);
        return 0;
    }
    assert(c->worker_heartbeat.us * 3 <= c->worker_lease.us && c->retry_base.us <= c->retry_max.us);
    config_each(c, each, NULL);
    config_free(c);
    return 0;
}
