/* What the files of this folder share: calls and the multi handles they are in. */
#ifndef PAWL_HTTP_INTERNAL_H
#define PAWL_HTTP_INTERNAL_H

#include "http.h"
#include "str.h"
#include <curl/curl.h>
#include <stddef.h>

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* One multi handle on the loop. Requests that may reach private addresses have one of their own:
 * libcurl would hand their open connections and cached names to the others (S31). */
struct multi {
    struct http *http;
    CURLM *curl;
    struct timer timer;
    struct http_call *calls; /* under way, doubly linked */
    long n_calls;
    struct sock **socks; /* by descriptor */
    size_t n_socks;
};

/* Easy handles kept for the next requests; each has a buffer. As many as end at about the same
 * time: making one costs as much as all the rest of a request. */
enum { SPARE_MAX = 256 };

struct http {
    struct loop *loop;
    char *ca_file, *user_agent;
    long idle;
    bool http1;
    struct multi open, strict;        /* open: allow_private */
    struct curl_slist *plain_headers; /* of a request that has none of its own; NULL: not made */
    CURL *spare[SPARE_MAX];
    size_t n_spare;
};

struct http_call {
    struct http *http;
    struct multi *multi;
    struct http_call *prev, *next;
    CURLM *curl; /* the handle it is in */
    CURL *easy;
    const struct http_url *url;
    struct http_url *own_url; /* the same, if it came as text; else NULL */
    struct curl_slist *headers;
    bool plain; /* a GET with plain_headers: request_undo() makes its handle as it was */
    http_done_fn *done;
    bool (*on_body)(void *arg, struct sv bytes);
    void *arg;
    struct str body;
    struct str head; /* max 0: nobody wants it */
    bool head_over;  /* trailers follow */
    char *method;    /* for http_result_request(); else NULL */
    int64_t sends;   /* the same: length of the request's body, -1: it has none */
    size_t header_bytes;
    bool too_large;      /* it was ended for that */
    bool stopped;        /* by on_body */
    bool announced;      /* the answer says that it has a body */
    int64_t length;      /* and how long it is, plus 1; 0: not said */
    bool contradicts;    /* it says two lengths */
    const char *refused; /* what the last address that was refused is; NULL: none was */
    int opened;          /* sockets */
    char words[CURL_ERROR_SIZE];
};

/* multi.c */
PAWL_MUST_USE int multi_init(struct multi *m, struct http *h, struct pawl_err *err);
void multi_done(struct multi *m); /* its calls are gone before */
PAWL_MUST_USE int multi_add(struct multi *m, struct http_call *c, struct pawl_err *err);
void multi_remove(struct http_call *c);
/* A connection's socket was made; and it is to be closed, for CURLOPT_CLOSESOCKETFUNCTION. */
void multi_opened(struct multi *m, curl_socket_t fd);
int multi_closing(void *multi, curl_socket_t fd);

/* url.c */
struct http_url {
    CURLU *curl;
    bool https;
};

/* request.c */
/* In a handle that is new, or was reset: what holds for every request. */
void request_rules(CURL *easy, const struct http *h);
PAWL_MUST_USE int request_set(struct http_call *c, const struct http_request *req,
                              struct pawl_err *err);
/* Nothing of a plain request is left in its handle. */
void request_undo(CURL *easy);

/* head.c */
void head_line(struct http_call *c, struct sv line);

/* result.c */
void result_make(const struct http_call *c, CURLcode code, struct http_result *out);

/* http.c */
CURL *easy_take(struct http *h); /* with the rules alone; NULL: there is no memory */
void call_finish(struct http_call *c, CURLcode code);

#endif
