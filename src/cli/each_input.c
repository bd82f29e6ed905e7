/* Inputs of `pawl each`: words, files, stdin, and all their combinations. The first source is read
 * as it comes, in constant memory; further ones are held. */
#include "each.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

enum { VALUE_MAX = 1 << 20, PATIENCE_MS = 20, CHUNK = 64 << 10 };

/* ---- the command line ---- */

static bool is_mark(const char *word)
{
    return !strncmp(word, ":::", 3) &&
           strspn(word, ":") + strspn(word + strspn(word, ":"), "+") == strlen(word);
}

static int add_source(struct each_inputs *in, struct each_source s, struct pawl_err *err)
{
    if (in->n == EACH_SOURCES_MAX)
        return err_set(err, PAWL_EUSAGE, "each: more than %d sources of input", EACH_SOURCES_MAX);
    s.fd = -1;
    s.held = STR_INIT(STR_OUTPUT);
    in->source[in->n++] = s;
    return 0;
}

static int add_files(struct each_inputs *in, char *const *words, size_t n, struct pawl_err *err)
{
    int rc = n ? 0 : err_set(err, PAWL_EUSAGE, "each: a file is expected after '::::'");
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_source(in, (struct each_source){.file = words[i]}, err);
    return rc;
}

static int read_marks(struct each_inputs *in, char *const *words, size_t n, struct pawl_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0;) {
        const char *mark = words[i++];
        size_t from = i;
        while (i < n && !is_mark(words[i]))
            i++;
        if (!strcmp(mark, ":::"))
            rc =
                add_source(in, (struct each_source){.args = words + from, .n_args = i - from}, err);
        else if (!strcmp(mark, "::::"))
            rc = add_files(in, words + from, i - from, err);
        else
            rc = err_set(err, PAWL_EUSAGE, "each: '%s' is not supported; ':::' and '::::' are",
                         mark);
    }
    return rc;
}

static int read_colsep(struct each_inputs *in, const char *text, struct pawl_err *err)
{
    in->colsep = STR_INIT(256);
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            str_addc(&in->colsep, *++text == 't' ? '\t' : *text);
        else if (strchr(".*+?[](){}^$|", *text) && text[0])
            return err_set(err, PAWL_EUSAGE,
                           "--colsep is a text, not an expression; write '\\%c' for '%c'", *text,
                           *text);
        else
            str_addc(&in->colsep, *text);
    }
    if (!in->colsep.len)
        return err_set(err, PAWL_EUSAGE, "--colsep is empty");
    return 0;
}

static int open_source(struct each_source *s, struct pawl_err *err)
{
    if (!s->file)
        return 0;
    s->fd = strcmp(s->file, "-") ? open(s->file, O_RDONLY | O_CLOEXEC)
                                 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (s->fd < 0)
        return err_errno(err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_EINPUT, errno, "%s", s->file);
    return 0;
}

int each_inputs_init(struct each_inputs *in, char *const *words, size_t n, const struct args *args,
                     struct pawl_err *err)
{
    const char *file;
    int rc = 0;
    *in = (struct each_inputs){.null = args_has(args, "null"), .stop_fd = -1};
    if (args_has(args, "colsep"))
        rc = read_colsep(in, args_get(args, "colsep"), err);
    for (size_t i = 0; rc == 0 && (file = args_nth(args, "arg-file", i)) != NULL; i++)
        rc = add_source(in, (struct each_source){.file = file}, err);
    if (rc == 0)
        rc = read_marks(in, words, n, err);
    if (rc == 0 && in->n == 0)
        rc = add_source(in, (struct each_source){.file = "-"}, err);
    for (size_t i = 0; i < in->n && rc == 0; i++)
        rc = open_source(&in->source[i], err);
    return rc;
}

void each_inputs_done(struct each_inputs *in)
{
    for (size_t i = 0; i < in->n; i++) {
        fd_closep(&in->source[i].fd);
        str_done(&in->source[i].held);
    }
    str_done(&in->colsep);
    in->n = 0;
}

/* ---- reading ---- */

struct walk {
    struct each_inputs *in;
    int (*each)(void *arg, const struct each_input *input, struct pawl_err *err);
    int (*idle)(void *arg, struct pawl_err *err);
    void *arg;
    struct pawl_err *err;
    struct each_input input;
    struct sv value[EACH_SOURCES_MAX];
    bool stopped;
};
typedef int (*take_value)(struct walk *w, struct each_source *s, struct sv value);

static const char *name_of(const struct each_source *s)
{
    return !strcmp(s->file, "-") ? "stdin" : s->file;
}

static int hand_over(struct walk *w, struct each_source *s, struct sv value, take_value take)
{
    if (value.n && memchr(value.p, 0, value.n)) {
        err_set(w->err, PAWL_EINPUT, "%s: a line holds a NUL character, which no argument can",
                name_of(s));
        return err_hint(w->err, "values that are ended by NUL are read with -0");
    }
    return take(w, s, value.n ? value : SV(""));
}

/* All whole values in [buf, buf+n); returns what is left over in *rest. */
static int cut_values(struct walk *w, struct each_source *s, struct sv all, take_value take,
                      struct sv *rest)
{
    char end = w->in->null ? '\0' : '\n';
    const char *at;
    int rc = 0;
    while (rc == 0 && !w->stopped && all.n && (at = memchr(all.p, end, all.n)) != NULL) {
        size_t n = (size_t)(at - all.p);
        rc = hand_over(w, s, sv_make(all.p, n), take);
        all = sv_make(at + 1, all.n - n - 1);
    }
    *rest = all;
    return rc;
}

/* Wait for bytes; true when there is nothing more to wait for because of a stop. */
static int wait_for(struct walk *w, int fd)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = w->in->stop_fd, .events = POLLIN}};
    int n = poll(p, 2, w->idle ? PATIENCE_MS : -1);
    if (n == 0) {
        int rc = w->idle(w->arg, w->err);
        if (rc < 0)
            return rc;
        n = poll(p, 2, -1);
    }
    w->stopped = n > 0 && p[1].revents;
    return 0;
}

static int read_values(struct walk *w, struct each_source *s, take_value take)
{
    AUTO_STR struct str buf = STR_INIT(VALUE_MAX + 2 * CHUNK);
    char chunk[CHUNK];
    for (;;) {
        struct sv rest;
        int rc = wait_for(w, s->fd);
        if (rc < 0 || w->stopped)
            return rc;
        ssize_t n = read(s->fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(w->err, PAWL_EINPUT, errno, "cannot read %s", name_of(s));
        if (n == 0)
            return buf.len ? hand_over(w, s, str_sv(&buf), take) : 0;
        str_add(&buf, sv_make(chunk, (size_t)n));
        rc = cut_values(w, s, str_sv(&buf), take, &rest);
        if (rc < 0 || w->stopped)
            return rc;
        memmove(buf.p, rest.p, rest.n);
        buf.len = rest.n;
        if (buf.len > VALUE_MAX)
            return err_set(w->err, PAWL_EINPUT, "%s: a line is longer than %d bytes", name_of(s),
                           VALUE_MAX);
    }
}

static int hold(struct walk *w, struct each_source *s, struct sv value)
{
    str_add(&s->held, value);
    str_addc(&s->held, '\0');
    if (s->held.overflow)
        return err_set(w->err, PAWL_EINPUT, "%s: too large for a second source of input",
                       name_of(s));
    return 0;
}

/* ---- combining ---- */

static void split(struct walk *w, struct sv value)
{
    struct sv sep = str_sv(&w->in->colsep);
    const char *at;
    while (sep.n && w->input.n < EACH_COLUMNS_MAX - 1 && value.n &&
           (at = memmem(value.p, value.n, sep.p, sep.n)) != NULL) {
        size_t n = (size_t)(at - value.p);
        w->input.column[w->input.n++] = sv_make(value.p, n);
        value = sv_make(at + sep.n, value.n - n - sep.n);
    }
    w->input.column[w->input.n++] = value;
}

static int emit(struct walk *w)
{
    w->input.n = 0;
    w->input.seq++;
    for (size_t i = 0; i < w->in->n && w->input.n < EACH_COLUMNS_MAX; i++)
        split(w, w->value[i]);
    struct pollfd p = {.fd = w->in->stop_fd, .events = POLLIN};
    w->stopped = w->input.seq % 512 == 0 && poll(&p, 1, 0) > 0;
    return w->stopped ? 0 : w->each(w->arg, &w->input, w->err);
}

static int combine(struct walk *w, size_t depth)
{
    int rc = 0;
    if (depth == w->in->n)
        return emit(w);
    const struct each_source *s = &w->in->source[depth];
    for (size_t i = 0; i < s->n_args && rc == 0 && !w->stopped; i++) {
        w->value[depth] = sv_of(s->args[i]);
        rc = combine(w, depth + 1);
    }
    for (size_t at = 0; at < s->held.len && rc == 0 && !w->stopped;) {
        w->value[depth] = sv_of(s->held.p + at);
        at += w->value[depth].n + 1;
        rc = combine(w, depth + 1);
    }
    return rc;
}

static int first(struct walk *w, struct each_source *s, struct sv value)
{
    (void)s;
    w->value[0] = value;
    return combine(w, 1);
}

int each_inputs_walk(struct each_inputs *in,
                     int (*each)(void *arg, const struct each_input *input, struct pawl_err *err),
                     int (*idle)(void *arg, struct pawl_err *err), void *arg, struct pawl_err *err)
{
    AUTO_FREE struct walk *w = mem_zalloc(1, sizeof(*w));
    *w = (struct walk){.in = in, .each = each, .idle = idle, .arg = arg, .err = err};
    int rc = 0;
    for (size_t i = 1; i < in->n && rc == 0 && !w->stopped; i++)
        if (in->source[i].file)
            rc = read_values(w, &in->source[i], hold);
    if (rc < 0 || w->stopped)
        return rc;
    return in->source[0].file ? read_values(w, &in->source[0], first) : combine(w, 0);
}
