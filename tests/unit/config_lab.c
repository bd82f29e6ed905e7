/* Folder, loader and tables of the configuration's tests. */
#include "config_lab.h"

#include "fd.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

static char folder[PATH_MAX];

void write_file(const char *name, const char *text, mode_t mode)
{
    AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

int enter_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/pawl-config-XXXXXX", tmp ? tmp : "/tmp");
    return !mkdtemp(folder) || chdir(folder) != 0 || mkdir("secrets", 0700) != 0;
}

int leave_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"pawl.yaml", "other.yaml", "secrets/token", "secrets/lease",
                                        "secrets/two"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlink(names[i]);
    rmdir("secrets");
    return chdir("/") != 0 || rmdir(folder) != 0;
}

int load(const char *yaml, const char *const *env, const char *const *flags, size_t n_flags,
         struct config **out, struct pawl_err *err)
{
    unlink("pawl.yaml");
    if (yaml)
        write_file("pawl.yaml", yaml, 0600);
    return config_load(NULL, (char *const *)env, flags, n_flags, out, err);
}

struct config *load_good(const char *yaml)
{
    struct config *c = NULL;
    struct pawl_err err = {0};
    assert_true_msg(load(yaml, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
    return c;
}

struct looking {
    const char *key;
    char value[512], origin[256];
    bool found;
};

static void look(void *arg, const struct config_value *v)
{
    struct looking *l = arg;
    if (strcmp(v->key, l->key) != 0)
        return;
    l->found = true;
    assert_true(v->doc && v->doc[0]);
    snprintf(l->value, sizeof(l->value), "%s", v->value);
    snprintf(l->origin, sizeof(l->origin), "%s", v->origin);
}

void assert_shown(const struct config *c, const char *key, const char *value, const char *origin)
{
    struct looking l = {.key = key};
    config_each(c, look, &l);
    assert_true_msg(l.found, "%s is not shown", key);
    assert_string_equal(l.value, value);
    assert_string_equal(l.origin, origin);
}

void assert_refused(const struct refusal *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct config *c = NULL;
        struct pawl_err err = {0};
        int rc = load(rows[i].yaml, NULL, NULL, 0, &c, &err);
        assert_true_msg(rc == PAWL_ECONFIG && err.code == rc && !c, "accepted: %s (%d %s)",
                        rows[i].yaml, rc, err.msg);
        assert_string_equal(err.msg, rows[i].msg);
    }
}
