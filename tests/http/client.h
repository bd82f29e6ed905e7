/* A loop, a client and what came of a request: for tests against fetchserver. */
#ifndef PAWL_TESTS_HTTP_CLIENT_H
#define PAWL_TESTS_HTTP_CLIENT_H

#include "../lib/fetchserver.h"
#include "../unit/unit.h"

#include "http.h"

struct outcome {
    int calls, want;
    int of[N_HTTP_ERRORS]; /* how many ended so */
    struct http_result res;
    char version[8], coding[64];
    struct str body;
};

extern struct fetchserver server;
extern struct loop *loop;
extern struct http *http;
extern struct outcome got;

int client_begin(void **state);
int client_end(void **state);
/* Another client until the next test. */
void client_again(const struct http_options *o);

/* "http://127.0.0.1:PORT" and the path; a few of them are valid at a time. */
const char *at(const char *path);
const char *at_port(const char *scheme, const char *port, const char *path);

void done(void *arg, const struct http_result *res); /* counts into `got` */
const struct http_result *ask(struct http_request req);
/* With a time limit of 20 s, private addresses allowed. */
const struct http_result *get(const char *path);
/* n at once; the last one's result is in `got`. */
void get_many(const char *url, int n);

int64_t server_count(const char *what); /* a number of /__stats */
long rss_kib(void);

#endif
