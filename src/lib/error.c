/* Errors and versions as the public header has them. */
#include "api.h"

#include <stdarg.h>
#include <stdio.h>

/* Public numbers are fixed, those inside follow errors.def: one row there without a public code
 * does not compile. */
static int public_code(int code)
{
    switch (code) {
#define X(name, exit_status, json, text)                                                           \
    case PAWL_E##name:                                                                             \
        return PAWL_ERROR_##name;
#include "errors.def"
#undef X
    default:
        return PAWL_ERROR_INTERNAL;
    }
}

static int private_code(int code)
{
    switch (code) {
#define X(name, exit_status, json, text)                                                           \
    case PAWL_ERROR_##name:                                                                        \
        return PAWL_E##name;
#include "errors.def"
#undef X
    default:
        return code == 0 ? PAWL_OK : PAWL_EINTERNAL;
    }
}

int api_fail(pawl_error *out, const struct pawl_err *e)
{
    int code = public_code(e->code);
    if (!out)
        return code;
    *out = (pawl_error){.code = code,
                        .exit_status = err_exit_status(e->code ? e->code : PAWL_EINTERNAL),
                        .sys_errno = e->sys_errno};
    snprintf(out->message, sizeof(out->message), "%s", e->msg[0] ? e->msg : err_text(e->code));
    snprintf(out->hint, sizeof(out->hint), "%s", e->hint);
    return code;
}

int api_end(int rc, pawl_error *out, const struct pawl_err *e)
{
    return rc < 0 ? api_fail(out, e) : 0;
}

int api_usage(pawl_error *out, const char *fmt, ...)
{
    struct pawl_err e = {.code = PAWL_EUSAGE};
    va_list args;
    va_start(args, fmt);
    vsnprintf(e.msg, sizeof(e.msg), fmt, args);
    va_end(args);
    return api_fail(out, &e);
}

const char *pawl_error_name(int code)
{
    return code == 0 ? "ok" : err_name(private_code(code));
}

int pawl_error_exit_status(int code)
{
    return err_exit_status(private_code(code));
}

const char *pawl_version(void)
{
    return PAWL_VERSION;
}
