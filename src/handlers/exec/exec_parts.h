/* Inside handlers/exec: the parts of one attempt. */
#ifndef PAWL_HANDLERS_EXEC_PARTS_H
#define PAWL_HANDLERS_EXEC_PARTS_H

#include "config.h"
#include "handler.h"
#include "json.h"
#include "process.h"

/* What a payload of kind exec asks for. Everything lives in the arena or in the payload. */
struct exec_payload {
    const char **argv; /* NULL-terminated */
    const char **env;  /* NULL-terminated "K=V" */
    const char *cwd;   /* NULL: the worker's */
    struct sv input;   /* n 0: none */
    struct sv slot;    /* stands for the slot's number in the words of argv; n 0: none */
};
/* Put the slot's number where the payload wants it. */
void exec_payload_fill_slot(struct exec_payload *p, int slot, struct arena *a);
/* INPUT naming the member. S38: an array, never a shell string; S39: no dangerous variables. */
PAWL_MUST_USE int exec_payload_read(struct sv payload, struct arena *a, struct exec_payload *out,
                                    struct pawl_err *err);

/* A growing environment: a later value replaces an earlier one of its name. */
struct exec_env {
    struct arena *arena;
    const char **v; /* NULL-terminated; freed by exec_env_done */
    size_t n, cap;
};
/* "K=V", borrowed. */
void exec_env_set(struct exec_env *e, const char *pair);
/* Start as a copy of another one; *e is empty. */
void exec_env_begin(struct exec_env *e, const struct exec_env *from);
void exec_env_done(struct exec_env *e);
/* What jobs inherit from `environ_`: the built-in list and config's pass_env. */
void exec_env_inherit(struct exec_env *e, char *const *environ_, const struct string_list *pass);
/* PAWL_JOB_ID and the others that say which attempt this is. */
void exec_env_describe(struct exec_env *e, const struct run *r, struct wall now);

/* A file that the job wants kept. */
struct exec_artifact {
    struct sv name, type; /* type: p NULL: not said */
    const char *path;     /* as the job wrote it */
};

/* What the job has said on descriptor 3. */
struct exec_control {
    struct run *run;
    struct arena *arena; /* of the attempt */
    struct json doc;
    int64_t lines;
    enum { SAID_NOTHING, SAID_DONE, SAID_SKIP, SAID_FATAL, SAID_RETRY } outcome;
    enum fail_class cls;    /* SAID_RETRY */
    struct dur asked;       /* SAID_RETRY; us < 0: not said */
    bool throttled;         /* SAID_RETRY: the peer asked for fewer, */
    struct dur retry_after; /* and for this pause; us < 0: not said */
    struct sv reason;       /* p NULL: none */
    struct sv result;       /* p NULL: none */
    struct job_spec *children;
    size_t n_children, cap_children;
    struct exec_artifact *artifacts;
    size_t n_artifacts, cap_artifacts;
    struct sv error; /* what was wrong with the first bad line; p NULL: nothing */
};
void exec_control_init(struct exec_control *c, struct run *r, struct arena *a);
void exec_control_done(struct exec_control *c);
/* One line (process_events.on_line). */
void exec_control_line(struct exec_control *c, struct sv line, int64_t at, bool too_long);

/* What was started. */
struct exec_attempt {
    const struct kind_conf *kind; /* NULL: kind exec without an entry of its own */
    const char *program;
    const char *cwd; /* NULL: the worker's */
    struct dur timeout;
    bool plain; /* no exit status means anything but success or failure */
};
/* The result of an attempt from its processes' end and what the job said. Texts are put into
 * `text`. */
struct run_result exec_result(const struct exec_attempt *what, const struct process_report *report,
                              const struct exec_control *said, struct str *text);

/* Keeps the files that the job named, all at once; *result then has them, or says why not. `done`
 * comes once, later. Everything is borrowed until then. */
void exec_keep(const struct exec_control *said, const char *cwd, struct run_result *result,
               struct str *text, void (*done)(void *arg), void *arg);

/* ---- the handler ---- */

struct exec_handler {
    struct handler base;
    struct zygote *zygote;
    struct loop *loop;
    const struct config *config;
    struct arena arena; /* of `inherited` */
    struct exec_env inherited;
    bool plain;
};
/* What every process of the kind (NULL: exec) gets, whatever the job. */
void exec_from_kind(const struct exec_handler *self, const struct kind_conf *kind,
                    struct process_spec *spec, struct exec_env *env);
const char **exec_argv(struct arena *a, const struct string_list *command);

/* check.c: handler_ops.check */
void exec_check(struct handler *h, struct kind_check *c);
void exec_check_cancel(struct handler *h, struct kind_check *c);

#endif
