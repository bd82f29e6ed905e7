#include "fetchserver.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool read_ports(struct fetchserver *s, const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(s->told, 1, sizeof(s->told) - 1, f);
    s->told[n] = '\0';
    fclose(f);
    return n > 0;
}

static void become_server(int in, const char *ports, bool tls, const char *pages)
{
    const char *argv[10] = {"/usr/bin/python3", FETCHSERVER, "--with-parent", "--port-file", ports};
    int n = 5;
    if (tls)
        argv[n++] = "--tls";
    if (pages) {
        argv[n++] = "--pages";
        argv[n++] = pages;
    }
    dup2(in, 0);
    execv("/usr/bin/python3", (char *const *)argv);
    _exit(127);
}

bool fetchserver_start(struct fetchserver *s, bool tls, const char *pages)
{
    const char *tmp = getenv("TMPDIR");
    char ports[300], folder[300];
    int fds[2];
    *s = (struct fetchserver){.lifeline = -1};
    snprintf(s->folder, sizeof(s->folder), "%.200s/fetch-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(s->folder) || pipe2(fds, O_CLOEXEC) < 0)
        return false;
    snprintf(ports, sizeof(ports), "%s/ports", s->folder);
    if (pages) {
        snprintf(folder, sizeof(folder), "%s/%.40s", s->folder, pages);
        mkdir(folder, 0755);
    }
    s->pid = fork();
    if (s->pid == 0)
        become_server(fds[0], ports, tls, pages ? folder : NULL);
    close(fds[0]);
    s->lifeline = fds[1];
    for (int i = 0; i < 3000; i++) { /* 30 s */
        if (read_ports(s, ports))
            return true;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
            break;
        poll(NULL, 0, 10);
    }
    return false;
}

void fetchserver_stop(struct fetchserver *s)
{
    char command[320];
    if (s->lifeline >= 0)
        close(s->lifeline);
    if (s->pid > 0)
        waitpid(s->pid, NULL, 0);
    snprintf(command, sizeof(command), "rm -rf '%s'", s->folder);
    (void)!system(command);
}

static const char *value_of(const struct fetchserver *s, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = s->told; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (!strncmp(p, name, n) && p[n] == ' ')
            return p + n + 1;
    return NULL;
}

int fetchserver_port(const struct fetchserver *s, const char *name)
{
    const char *v = value_of(s, name);
    return v ? (int)strtol(v, NULL, 10) : 0;
}

bool fetchserver_file(const struct fetchserver *s, const char *name, char *out, int size)
{
    const char *v = value_of(s, name);
    if (v)
        snprintf(out, (size_t)size, "%.*s", (int)strcspn(v, "\n"), v);
    return v != NULL;
}
