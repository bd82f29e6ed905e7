/* Errors: every function that can fail returns 0 or a negative PAWL_E… code and describes the
 * failure in a struct the caller owns. On success the struct and all out-parameters of a failing
 * call stay untouched. The struct has a fixed size, so reporting never allocates. */
#ifndef PAWL_BASE_ERR_H
#define PAWL_BASE_ERR_H

#define PAWL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define PAWL_MUST_USE          __attribute__((warn_unused_result))

enum pawl_code {
    PAWL_OK = 0,
    PAWL_E_FIRST_ = -1000,
#define X(name, exit_status, json, text) PAWL_E##name,
#include "errors.def"
#undef X
};

struct pawl_err {
    int code;       /* PAWL_E…, 0 while unset */
    int sys_errno;  /* errno behind it, or 0 */
    char msg[384];  /* WHAT: WHY, lower case, no full stop */
    char hint[192]; /* what the user can do; may be empty */
};

/* Set err (may be NULL) and return code, so that a failing function ends in one line. */
int err_set(struct pawl_err *err, int code, const char *fmt, ...) PAWL_PRINTF(3, 4);
/* As err_set, with ": strerror(errno_)" appended. */
int err_errno(struct pawl_err *err, int code, int errno_, const char *fmt, ...) PAWL_PRINTF(4, 5);
/* Put "context: " in front of the message; returns the code already set. */
int err_wrap(struct pawl_err *err, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* Set the hint; returns the code already set. */
int err_hint(struct pawl_err *err, const char *fmt, ...) PAWL_PRINTF(2, 3);

const char *err_name(int code); /* "not_found" */
const char *err_text(int code); /* words for the code alone */
int err_exit_status(int code);  /* 0 for PAWL_OK */

#endif
