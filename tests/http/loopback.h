/* A server on loopback that misbehaves on request, and a client to ask it. */
#ifndef PAWL_TESTS_HTTP_LOOPBACK_H
#define PAWL_TESTS_HTTP_LOOPBACK_H

#include "../unit/unit.h"

#include "http.h"
#include <stdatomic.h>

/* A thread a connection; the path says what it does. */
extern struct server {
    int fd;
    int port;
    atomic_int connections, open;
} server;

/* A listening socket of its own and its port. */
int listen_on_loopback(int *port);
void server_start(void);
void server_wait(void); /* until its threads have ended with their clients */

/* The client of one test, and what came of its last request, copied. */
extern struct loop *loop;
extern struct http *http;
extern struct outcome {
    int calls, want;
    struct http_result res;
    char body[4096], location[256], redirect[256], type[64], etag[64], two[16];
} got;
int begin(void **state);
int end(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

const char *at(const char *path);                    /* the URL; until the next call */
void done(void *arg, const struct http_result *res); /* counts into `got` */
struct http_result *ask(struct http_request req);
struct http_result *get(const char *path); /* private addresses allowed */

#endif
