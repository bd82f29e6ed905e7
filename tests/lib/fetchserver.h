/* fetchserver.py beside a C test: started in a folder of its own, gone when the test is. */
#ifndef PAWL_TESTS_FETCHSERVER_H
#define PAWL_TESTS_FETCHSERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct fetchserver {
    pid_t pid;
    int lifeline;     /* its standard input: it ends when this closes */
    char folder[256]; /* temporary; the test may put files there */
    char told[2048];  /* what it listens on: lines of NAME VALUE */
};

/* `tls`: ports for good and bad certificates too. `pages`: a folder inside s->folder, made here,
 * that nginx serves over HTTP/2 if it is installed; NULL: none. false: it does not start. */
bool fetchserver_start(struct fetchserver *s, bool tls, const char *pages);
void fetchserver_stop(struct fetchserver *s);
/* "http", "good", "self-signed", "expired", "wrong-host", "h2"; 0: there is none. */
int fetchserver_port(const struct fetchserver *s, const char *name);
/* "ca", "h2-ca": false if there is none. */
bool fetchserver_file(const struct fetchserver *s, const char *name, char *out, int size);

#endif
