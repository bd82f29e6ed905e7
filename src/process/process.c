/* One running process as the worker sees it: its request, its control socket, its report. */
#include "process.h"

#include "fd.h"
#include "mem.h"
#include "wire.h"
#include "zygote_link.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MESSAGES_PER_TURN = 16, BODY_MAX = 64 << 20 };

struct process {
    struct watch control; /* first: on_event gets it */
    struct loop *loop;
    struct process_events events;
    struct str line;     /* the unfinished control line */
    int64_t line_at;     /* where it began */
    int64_t lines_total; /* bytes so far */
    bool deaf;           /* a maximum was passed: control lines are dropped */
    struct zygote *zygote;
    unsigned generation; /* of the session lock its supervisor holds */
};

/* `stays`: its supervisor waits for another job. */
static void process_free(struct process *p, bool stays)
{
    loop_unwatch(p->loop, &p->control);
    if (!stays || !zygote_keep(p->zygote, p->control.fd, p->generation))
        close(p->control.fd);
    str_done(&p->line);
    free(p);
}

static void end_process(struct process *p, const struct process_report *report, bool stays)
{
    struct process_events events = p->events;
    process_free(p, stays);
    events.on_exit(events.arg, report);
}

static void refuse_lines(struct process *p)
{
    p->deaf = true;
    str_done(&p->line);
    p->line = STR_INIT(PROCESS_LINE_MAX);
    p->events.on_line(p->events.arg, SV(""), p->line_at, true);
}

static void deliver_line(struct process *p, int64_t next_at)
{
    p->events.on_line(p->events.arg, str_sv(&p->line), p->line_at, false);
    str_clear(&p->line);
    p->line_at = next_at;
}

static void on_chunk(struct process *p, struct sv bytes)
{
    int64_t at = p->lines_total;
    p->lines_total += (int64_t)bytes.n;
    while (bytes.n && !p->deaf) {
        const char *lf = memchr(bytes.p, '\n', bytes.n);
        size_t n = lf ? (size_t)(lf - bytes.p) : bytes.n;
        str_add(&p->line, sv_make(bytes.p, n));
        if (p->line.overflow || p->lines_total > PROCESS_LINES_MAX) {
            refuse_lines(p);
            return;
        }
        size_t used = n + (lf != NULL);
        at += (int64_t)used;
        if (lf)
            deliver_line(p, at);
        bytes = sv_make(bytes.p + used, bytes.n - used);
    }
}

static void on_report(struct process *p, const struct wire_exit *e, struct sv tail)
{
    bool ran = e->cause != PROCESS_START_FAILED;
    struct process_report r = {
        .cause = (enum process_cause)e->cause,
        .exit_code = ran && WIFEXITED(e->status) ? WEXITSTATUS(e->status) : -1,
        .signal = ran && WIFSIGNALED(e->status) ? WTERMSIG(e->status) : 0,
        .step = (enum process_step)e->step,
        .error = e->error,
        .log_bytes = e->log_bytes,
        .log_error = e->log_error,
        .user = DUR_US(e->user_us),
        .system = DUR_US(e->system_us),
        .max_rss_bytes = e->max_rss_kib * 1024,
        .tail = tail,
    };
    if (!p->deaf && p->line.len)
        deliver_line(p, p->lines_total); /* the last line may come without LF */
    end_process(p, &r, e->stays);
}

/* The supervisor's end of the socket is closed and no report came. */
static void on_lost(struct process *p)
{
    end_process(p, &(struct process_report){.cause = PROCESS_LOST, .exit_code = -1}, false);
}

/* One message. False when there is none, or the process is gone. */
static bool take_message(struct process *p)
{
    union {
        struct wire_chunk chunk;
        struct wire_exit exit;
        uint32_t type;
        char bytes[sizeof(struct wire_exit) + WIRE_TAIL_MAX + WIRE_CHUNK_MAX];
    } message;
    ssize_t n = recv(p->control.fd, &message, sizeof(message), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    /* A supervisor that ended with a cancel unread: said once, before what it sent is handed out.
     */
    if (n < 0 && errno == ECONNRESET)
        return true;
    if (n <= 0) {
        on_lost(p);
        return false;
    }
    if (message.type == WIRE_CHUNK) {
        on_chunk(p,
                 sv_make(message.bytes + sizeof(message.chunk), (size_t)n - sizeof(message.chunk)));
        return true;
    }
    on_report(p, &message.exit,
              sv_make(message.bytes + sizeof(message.exit), message.exit.tail_len));
    return false;
}

static void on_control(struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < MESSAGES_PER_TURN && take_message((struct process *)w); i++)
        continue;
}

void process_cancel(struct process *p, bool at_once)
{
    struct wire_cancel c = {.type = WIRE_CANCEL, .at_once = at_once};
    /* A full socket holds earlier cancels; a closed one has its end on the way. */
    (void)!send(p->control.fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static uint32_t add_list(struct str *body, const char *const *list)
{
    uint32_t n = 0;
    for (; list && list[n]; n++)
        str_add(body, sv_make(list[n], strlen(list[n]) + 1));
    return n;
}

static int64_t limit_us(struct dur d)
{
    return d.us > 0 ? d.us : -1;
}

/* Header and body in one buffer. */
static int encode(const struct process_spec *s, struct str *out, struct pawl_err *err)
{
    struct wire_spawn head = {.type = WIRE_SPAWN,
                              .flags = s->no_new_privs ? WIRE_NO_NEW_PRIVS : 0,
                              .timeout_us = limit_us(s->timeout),
                              .idle_us = limit_us(s->idle_timeout),
                              .grace_us = s->grace.us,
                              .log_head = s->log_head,
                              .log_tail = s->log_tail};
    str_add(out, sv_make((const char *)&head, sizeof(head)));
    const char *first[] = {s->log_name ? s->log_name : "", s->cwd ? s->cwd : "", NULL};
    add_list(out, first);
    head.n_argv = add_list(out, s->argv);
    head.n_env = add_list(out, s->env);
    if (out->overflow)
        return err_set(err, PAWL_EINPUT, "command and environment are larger than %d MiB",
                       BODY_MAX >> 20);
    head.body_len = (uint32_t)(out->len - sizeof(head));
    memcpy(out->p, &head, sizeof(head));
    return 0;
}

/* A memfd with these bytes, its offset at 0. */
static int memfd_of(const char *name, struct sv bytes, struct pawl_err *err)
{
    AUTO_FD int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, bytes.p, bytes.n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot pass on the job's %s", name);
    return TAKE_FD(fd);
}

static int add_fd(struct zygote_request *r, int fd, uint32_t flag)
{
    if (fd < 0)
        return fd;
    r->fds[r->n_fds++] = fd;
    struct wire_spawn *head = (struct wire_spawn *)r->bytes;
    head->flags |= flag;
    return 0;
}

static int dup_fd(int fd, struct pawl_err *err)
{
    int dup = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return dup >= 0 ? dup : err_errno(err, PAWL_EIO, errno, "cannot duplicate a descriptor");
}

/* Descriptors in the order of struct wire_spawn. */
static int attach(struct zygote_request *r, const struct process_spec *s, struct pawl_err *err)
{
    int rc = 0;
    if (s->log_dir >= 0)
        rc = add_fd(r, dup_fd(s->log_dir, err), WIRE_HAS_LOG);
    if (rc == 0 && s->input.n)
        rc = add_fd(r, memfd_of("input", s->input, err), WIRE_HAS_INPUT);
    size_t head = sizeof(struct wire_spawn);
    if (rc == 0 && r->len - head > WIRE_BODY_MAX) {
        struct sv body = sv_make(r->bytes + head, r->len - head);
        rc = add_fd(r, memfd_of("command", body, err), WIRE_HAS_BODY_FD);
        r->len = head;
    }
    return rc;
}

/* Takes `control`; -1 for a supervisor that has its socket. */
static int request_new(const struct process_spec *s, int control, struct zygote_request **out,
                       struct pawl_err *err)
{
    struct str bytes = STR_INIT(BODY_MAX);
    struct zygote_request *r = mem_zalloc(1, sizeof(*r));
    if (control >= 0)
        r->fds[r->n_fds++] = control;
    int rc = encode(s, &bytes, err);
    r->bytes = bytes.p;
    r->len = bytes.len;
    if (rc == 0)
        rc = attach(r, s, err);
    if (rc < 0)
        zygote_request_free(r);
    else
        *out = r;
    return rc;
}

/* A new supervisor, from the zygote. Its control socket, or < 0. */
static int ask_zygote(struct zygote *z, const struct process_spec *spec, struct pawl_err *err)
{
    int pair[2];
    struct zygote_request *r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot create a job's control socket");
    int rc = request_new(spec, pair[1], &r, err);
    if (rc == 0)
        rc = zygote_request(z, r, err);
    if (rc < 0) {
        close(pair[0]); /* ends what may have been started */
        return rc;
    }
    return pair[0];
}

/* A supervisor that has just ended a job, if there is one that takes it: no fork, no detour. */
static int ask_kept(struct zygote *z, const struct process_spec *spec)
{
    for (int control; (control = zygote_kept(z)) >= 0; close(control)) {
        struct zygote_request *r;
        if (request_new(spec, -1, &r, NULL) < 0)
            continue;
        int rc = zygote_send(control, r);
        zygote_request_free(r);
        if (rc == 0)
            return control;
    }
    return -1;
}

int process_spawn(struct zygote *z, struct loop *loop, const struct process_spec *spec,
                  const struct process_events *events, struct process **out, struct pawl_err *err)
{
    int rc = zygote_use_loop(z, loop, err);
    if (rc < 0)
        return rc;
    int control = ask_kept(z, spec);
    if (control < 0)
        control = ask_zygote(z, spec, err);
    if (control < 0)
        return control;
    struct process *p = mem_zalloc(1, sizeof(*p));
    *p = (struct process){.control = {.fd = control, .on_event = on_control},
                          .loop = loop,
                          .events = *events,
                          .line = STR_INIT(PROCESS_LINE_MAX),
                          .zygote = z,
                          .generation = zygote_generation(z)};
    rc = loop_watch(loop, &p->control, EPOLLIN, err);
    if (rc < 0)
        process_free(p, false);
    else
        *out = p;
    return rc;
}
