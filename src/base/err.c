#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    int exit_status;
    const char *name;
    const char *text;
} table[] = {
#define X(name, exit_status, json, text) {PAWL_E##name, exit_status, json, text},
#include "errors.def"
#undef X
};

static void set_message(struct pawl_err *err, int code, int errno_, const char *fmt, va_list ap)
{
    err->code = code;
    err->sys_errno = errno_;
    err->hint[0] = '\0';
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (errno_ && used < sizeof(err->msg))
        snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", strerror(errno_));
}

int err_set(struct pawl_err *err, int code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        set_message(err, code, 0, fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_errno(struct pawl_err *err, int code, int errno_, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        set_message(err, code, errno_, fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_wrap(struct pawl_err *err, const char *fmt, ...)
{
    if (!err)
        return PAWL_EINTERNAL;
    char old[sizeof(err->msg)];
    memcpy(old, err->msg, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(err->msg))
        snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", old);
    return err->code;
}

int err_hint(struct pawl_err *err, const char *fmt, ...)
{
    if (!err)
        return PAWL_EINTERNAL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
    va_end(ap);
    return err->code;
}

const char *err_name(int code)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == code)
            return table[i].name;
    return code == PAWL_OK ? "ok" : "internal";
}

const char *err_text(int code)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == code)
            return table[i].text;
    return code == PAWL_OK ? "ok" : "internal error";
}

int err_exit_status(int code)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == code)
            return table[i].exit_status;
    return code == PAWL_OK ? 0 : 1;
}
