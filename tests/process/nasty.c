/* A badly behaved job. usage: nasty MODE [ARG] [end]
 * Says "ready" on descriptor 3 when it has become nasty; then stays, or exits 0 with `end`.
 *   ignore-term     ignores SIGTERM
 *   daemon          leaves a grandchild in its own session that ignores SIGTERM and holds stdout
 *   flood N         writes N bytes in numbered records of 16; 0: for ever
 *   line N          writes one line of N bytes; 0: for ever
 *   close           closes its output and control channel
 *   kids N          N children that ignore SIGTERM, every other one in a session of its own
 *   hop             a process that for ever forks itself, in a new session, and exits
 *   chatter         writes control lines for ever
 *   fds             prints the numbers of its open descriptors
 *   quit            nothing at all */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

static void stay(void)
{
    for (;;)
        pause();
}

static void ready(void)
{
    (void)!write(3, "\"ready\"\n", 8);
}

static void write_all(const char *p, size_t n)
{
    while (n) {
        ssize_t w = write(1, p, n);
        if (w < 0)
            exit(1);
        p += w;
        n -= (size_t)w;
    }
}

/* The next number in decimal, in place. */
static void count_up(char digits[15])
{
    int i = 14;
    while (i >= 0 && digits[i] == '9')
        digits[i--] = '0';
    if (i >= 0)
        digits[i]++;
}

/* Records of 16 bytes, numbered from 0: "%015d\n". Tests know the same formula. */
static void fill_records(char *block)
{
    static char record[17] = "000000000000000\n";
    for (int i = 0; i < BLOCK; i += 16) {
        memcpy(block + i, record, 16);
        count_up(record);
    }
}

static void flood(long long n, bool lines)
{
    static char block[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        block[i] = (char)('a' + i % 16);
    for (long long at = 0; !n || at < n; at += BLOCK) {
        if (lines)
            fill_records(block);
        write_all(block, n && n - at < BLOCK ? (size_t)(n - at) : BLOCK);
        if (at == 0 && !n)
            ready();
    }
}

static void leave_daemon(void)
{
    int alive[2];
    char byte;
    if (pipe(alive) < 0)
        exit(1);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            signal(SIGTERM, SIG_IGN);
            (void)!write(alive[1], "x", 1);
            stay();
        }
        _exit(0);
    }
    (void)!read(alive[0], &byte, 1);
}

static void have_kids(int n)
{
    int alive[2];
    char byte;
    if (pipe(alive) < 0)
        exit(1);
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            signal(SIGTERM, SIG_IGN);
            if (i % 2)
                setsid();
            (void)!write(alive[1], "x", 1);
            stay();
        }
    for (int i = 0; i < n; i++)
        (void)!read(alive[0], &byte, 1);
}

static void hop(void)
{
    if (fork() != 0)
        return;
    signal(SIGTERM, SIG_IGN);
    for (;;) {
        setsid();
        if (fork() > 0)
            _exit(0);
    }
}

static void chatter(void)
{
    for (;;)
        ready();
}

static void list_fds(void)
{
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d ", fd);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "quit";
    long long n = argc > 2 ? atoll(argv[2]) : 0;
    bool end = argc > 2 && !strcmp(argv[argc - 1], "end");
    if (!strcmp(mode, "quit"))
        return 0;
    if (!strcmp(mode, "ignore-term"))
        signal(SIGTERM, SIG_IGN);
    else if (!strcmp(mode, "daemon"))
        leave_daemon();
    else if (!strcmp(mode, "flood") || !strcmp(mode, "line"))
        flood(n, mode[0] == 'f' && mode[1] == 'l');
    else if (!strcmp(mode, "kids"))
        have_kids((int)n);
    else if (!strcmp(mode, "hop"))
        hop();
    else if (!strcmp(mode, "chatter") && !end)
        chatter();
    else if (!strcmp(mode, "fds"))
        list_fds();
    ready();
    if (!strcmp(mode, "close"))
        for (int fd = 1; fd <= 3; fd++)
            close(fd);
    if (!end)
        stay();
    return 0;
}
