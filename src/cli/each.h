/* The parts of `pawl each`: a template, inputs, a feeder thread that adds jobs, and what happens on
 * the worker's loop when they end. */
#ifndef PAWL_CLI_EACH_H
#define PAWL_CLI_EACH_H

#include "cli.h"
#include "mem.h"
#include <pthread.h>
#include <stdatomic.h>

enum { EACH_HASH = 12, EACH_COLUMNS_MAX = 64, EACH_SOURCES_MAX = 32 };

/* ---- each_template.c: the command with its replacement strings ---- */

struct each_piece {
    struct sv text; /* literal, when what is 0 */
    char what;      /* 'a' the argument, '#' sequence, '%' slot */
    char form;      /* of 'a': 0 whole, '.', '/', 'd' folder, 'b' name without ending */
    int column;     /* of 'a': 0 all, else from 1 */
};
struct each_word {
    struct each_piece *pieces;
    size_t n, cap;
};
struct each_template {
    struct each_word *words;
    size_t n, cap;
    bool shell;               /* one word that sh reads */
    bool naked;               /* no command: each input is one, for sh */
    bool slot;                /* the slot's number occurs */
    char hash[EACH_HASH + 1]; /* of the words and the folder */
    char mark[EACH_HASH + 8]; /* stands for the slot's number until the job starts */
};
/* Words of the command line up to the inputs. */
void each_template_init(struct each_template *t, char *const *words, size_t n, struct sv cwd);
void each_template_done(struct each_template *t);

/* One input: its columns. Borrowed. */
struct each_input {
    struct sv column[EACH_COLUMNS_MAX];
    size_t n;
    int64_t seq; /* from 1 */
};
/* The words of the command for an input, each appended to `words` and ended by NUL; their number is
 * returned. */
size_t each_expand(const struct each_template *t, const struct each_input *in, struct str *words);
/* The command as one would type it. `words` as from each_expand(); the slot's mark becomes `slot`.
 */
void each_show_command(const struct each_template *t, struct sv words, const char *slot,
                       struct str *out);

/* ---- each_input.c: where arguments come from ---- */

struct each_source {
    char *const *args; /* ::: */
    size_t n_args;
    const char *file; /* :::: or -a; "-" is stdin */
    int fd;
    struct str held; /* all but the first are read at once: values ended by NUL */
};
struct each_inputs {
    struct each_source source[EACH_SOURCES_MAX];
    size_t n;
    bool null;         /* NUL ends a value, not LF */
    struct str colsep; /* len 0: none */
    int stop_fd;       /* readable: give up reading; -1: none */
};
/* Read `::: A B`, `:::: FILE` out of the words behind the command. USAGE. */
PAWL_MUST_USE int each_inputs_init(struct each_inputs *in, char *const *words, size_t n,
                                   const struct args *args, struct pawl_err *err);
void each_inputs_done(struct each_inputs *in);
/* Every combination in order; ends early when `each` fails or stop_fd is readable. `idle`: nothing
 * more comes at once, so what was gathered should not wait. */
PAWL_MUST_USE int
each_inputs_walk(struct each_inputs *in,
                 int (*each)(void *arg, const struct each_input *input, struct pawl_err *err),
                 int (*idle)(void *arg, struct pawl_err *err), void *arg, struct pawl_err *err);

/* ---- each_place.c: which store ---- */

struct each_place {
    bool private_store;
    struct str folder; /* in the state folder: locked while this line runs */
    int lock_fd;
};
/* Load the configuration and decide. CONFLICT when the same line is running already. */
PAWL_MUST_USE int each_place_init(struct each_place *p, struct cli *c,
                                  const struct each_template *t, int64_t attempts,
                                  struct pawl_err *err);
/* remove: everything ended well, a private store is not needed any more. */
void each_place_done(struct each_place *p, struct cli *c, bool remove);
/* What an earlier run left in the queue must not run unless it is asked for again: it is cancelled
 * here, and queued again when its input comes. */
PAWL_MUST_USE int each_place_clear(struct cli *c, struct sv queue, struct pawl_err *err);

/* ---- each_order.c: output in the order of the input ---- */

struct each_held; /* an end that waits for the ones before it */
struct each_order {
    pthread_mutex_t lock;
    struct each_held **v; /* from seq `next` on, a ring */
    size_t cap, head, n;
    int64_t next;
};

/* ---- each_feed.c: adding jobs, on a thread of its own ---- */

struct each_feed {
    struct cli *c;
    const struct each_template *t;
    struct each_inputs *in;
    struct each_order *order; /* NULL: none */
    struct sv queue;
    const char *cwd;
    int max_attempts;
    struct dur timeout; /* us 0: none */

    pthread_t thread;
    bool started;
    struct loop *loop;
    int stop[2];            /* pipe: written to stop */
    atomic_bool over;       /* nothing more will be added */
    atomic_bool counted;    /* `total` is final */
    _Atomic int64_t total;  /* inputs so far */
    _Atomic int64_t before; /* of them done by an earlier run */
    struct pawl_err err;    /* code 0: none; read after the end */
};
PAWL_MUST_USE int each_feed_start(struct each_feed *f, struct loop *loop, struct pawl_err *err);
void each_feed_stop(struct each_feed *f);
/* The note of a job that this template made: its number and what --tag shows. */
struct each_note {
    int64_t seq;
    struct sv tag;   /* in the arena */
    struct sv words; /* of the command, ended by NUL each; in the arena */
};
bool each_note_read(struct sv payload, const char *hash, struct arena *a, struct json *doc,
                    struct each_note *out);

/* ---- each_end.c: what happens when jobs end ---- */

struct each_halt {
    enum { HALT_NEVER, HALT_SOON, HALT_NOW } when;
    int64_t number;
    bool percent;
};
enum { EACH_BUCKETS = 2600 };
struct each_ends {
    struct cli *c;
    struct each_feed *feed;
    struct each_order *order; /* NULL: as they end */
    struct each_halt halt;
    bool tag;
    int joblog;            /* -1: none */
    int log_dir;           /* with an order: the worker's may be gone at the last; -1: not yet */
    int64_t limit_percent; /* --timeout P%; 0: none */
    struct worker_guest guest;

    int64_t done, failed, halted_at; /* halted_at: failures when it stopped; 0: it did not */
    int64_t said;
    uint32_t took[EACH_BUCKETS]; /* of those done, by logarithm: for the median */
    int64_t n_took;
    struct json doc;
    struct arena arena;
    struct str line;
};
void each_ends_init(struct each_ends *e);
void each_ends_done(struct each_ends *e);
/* Print what still waits for inputs that will not end any more. */
void each_ends_flush(struct each_ends *e);

void each_order_init(struct each_order *o);
void each_order_done(struct each_order *o);
/* The feeder: one more input; expected says whether it will end in this run. */
void each_order_expect(struct each_order *o, int64_t seq, bool expected);
/* The loop: an end. Takes `h`; then take what may be shown now, NULL when there is nothing. */
struct each_held {
    int64_t seq;
    job_id id;
    fence_no fence;
    int64_t log_bytes;
    size_t tag_len;
    char tag[];
};
void each_order_end(struct each_order *o, struct each_held *h);
struct each_held *each_order_take(struct each_order *o, bool any);

#endif
