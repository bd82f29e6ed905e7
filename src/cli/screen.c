/* The terminal of the live view. What must be undone is kept in this file's statics, because a
 * signal handler has to find it. */
#include "watch.h"

#include "fd.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>

/* Alternate screen, cursor away, no wrapping at the right edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[H\033[2J"
#define LEAVE "\033[?7h\033[0m\033[?25h\033[?1049l"

static struct termios saved;
static volatile sig_atomic_t entered, resized, ended, suspended;
static int bell = -1; /* an eventfd that handlers ring: no signal slips in before the wait */
static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

bool screen_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && term && term[0] &&
           strcmp(term, "dumb") != 0;
}

void screen_leave(void)
{
    int kept = errno;
    if (entered) {
        entered = 0;
        (void)!write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
        tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    }
    errno = kept;
}

static void die_of(int sig)
{
    sigset_t only;
    screen_leave();
    signal(sig, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, sig);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(sig);
}

static void ring(void)
{
    static const uint64_t one = 1;
    int kept = errno;
    (void)!write(bell, &one, sizeof(one));
    errno = kept;
}

/* The first asks the loop to end; a second one does not wait for it. */
static void on_end(int sig)
{
    if (ended)
        die_of(sig);
    ended = sig;
    ring();
}

static void on_note(int sig)
{
    if (sig == SIGWINCH)
        resized = 1;
    else
        suspended = 1;
    ring();
}

static void catch_with(int sig, void (*handler)(int))
{
    struct sigaction sa = {.sa_handler = handler};
    sigaction(sig, &sa, NULL);
}

static void catch_signals(void)
{
    catch_with(SIGWINCH, on_note);
    catch_with(SIGTSTP, on_note);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        catch_with(ending[i], on_end);
    for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
        catch_with(deadly[i], die_of);
}

static int take_terminal(struct pawl_err *err)
{
    struct termios raw = saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    entered = 1;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 &&
        fd_write_all(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1) == 0)
        return 0;
    int failed = errno;
    screen_leave();
    return err_errno(err, PAWL_EIO, failed, "cannot take over the terminal");
}

int screen_enter(struct pawl_err *err)
{
    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot read the terminal's settings");
    if (bell < 0)
        bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot make an eventfd");
    catch_signals();
    return take_terminal(err);
}

void screen_size(int *cols, int *rows)
{
    struct winsize ws;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 && ws.ws_row > 0;
    *cols = known ? ws.ws_col : 80;
    *rows = known ? ws.ws_row : 24;
}

/* Ctrl-Z: the shell gets its terminal, and we get ours back when we go on. */
static unsigned step_aside(void)
{
    suspended = 0;
    screen_leave();
    raise(SIGSTOP);
    return tcgetattr(STDIN_FILENO, &saved) == 0 && take_terminal(NULL) == 0 ? SCREEN_SIZE
                                                                            : SCREEN_END;
}

int screen_signal(void)
{
    return ended;
}

unsigned screen_wait(int fd, struct dur longest)
{
    struct pollfd p[] = {{STDIN_FILENO, POLLIN, 0}, {fd, POLLIN, 0}, {bell, POLLIN, 0}};
    int64_t ms = (longest.us + 999) / 1000;
    uint64_t rings;
    unsigned what = 0;
    int n = poll(p, ARRAY_LEN(p), ms > 3600000 ? 3600000 : (int)ms);
    (void)!read(bell, &rings, sizeof(rings));
    if (n > 0 && p[0].revents)
        what |= SCREEN_KEY;
    if (n > 0 && p[1].revents)
        what |= SCREEN_FD;
    if (resized)
        what |= SCREEN_SIZE;
    resized = 0;
    if (suspended)
        what |= step_aside();
    return ended ? what | SCREEN_END : what;
}

size_t screen_read(char *buf, size_t size)
{
    ssize_t n = read(STDIN_FILENO, buf, size);
    return n > 0 ? (size_t)n : 0;
}

int screen_draw(const struct frame *before, const struct frame *after)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    bool all = !before || before->cols != after->cols || before->rows != after->rows;
    if (all)
        str_adds(&s, "\033[H\033[2J");
    for (int i = 0; i < after->rows; i++) {
        struct sv line = i < after->n ? str_sv(&after->lines[i]) : SV_NONE;
        struct sv old = !all && i < before->n ? str_sv(&before->lines[i]) : SV_NONE;
        if (line.n == old.n && sv_eq(line, old))
            continue;
        str_addf(&s, "\033[%d;1H", i + 1);
        str_add(&s, line);
        str_adds(&s, "\033[K");
    }
    return s.len ? fd_write_all(STDOUT_FILENO, s.p, s.len) : 0;
}
