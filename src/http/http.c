/* Making, starting, cancelling, completing. */
#include "http.h"

#include "http_internal.h"
#include "mem.h"

enum { IDLE_CONNECTIONS = 16 };

int http_new(struct loop *loop, const struct http_options *o, struct http **out,
             struct pawl_err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) /* counted, and safe in threads */
        return err_set(err, PAWL_EINTERNAL, "cannot set up libcurl");
    struct http *h = mem_zalloc(1, sizeof(*h));
    h->loop = loop;
    h->ca_file = o && o->ca_file ? mem_strdup(o->ca_file) : NULL;
    h->user_agent = mem_strdup(o && o->user_agent ? o->user_agent : "pawl/" PAWL_VERSION);
    h->idle = o && o->idle > 0 ? o->idle : IDLE_CONNECTIONS;
    h->http1 = o && o->http1;
    int rc = multi_init(&h->open, h, err);
    if (rc == 0)
        rc = multi_init(&h->strict, h, err);
    if (rc < 0) {
        http_free(h);
        return rc;
    }
    *out = h;
    return 0;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    struct multi *both[] = {&h->open, &h->strict};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        while (both[i]->calls)
            http_cancel(both[i]->calls);
        multi_done(both[i]);
    }
    while (h->n_spare)
        curl_easy_cleanup(h->spare[--h->n_spare]);
    curl_slist_free_all(h->plain_headers);
    free(h->ca_file);
    free(h->user_agent);
    free(h);
    curl_global_cleanup();
}

CURL *easy_take(struct http *h)
{
    if (h->n_spare)
        return h->spare[--h->n_spare];
    CURL *easy = curl_easy_init();
    if (easy)
        request_rules(easy, h);
    return easy;
}

/* One that served without a fault serves again. Of others nobody knows what they hold on to: the
 * resolver's thread of one that was cancelled may still be at work. */
static void easy_give(struct http *h, CURL *easy, bool fit, bool plain)
{
    if (!fit || h->n_spare == SPARE_MAX) {
        if (easy)
            curl_easy_cleanup(easy);
        return;
    }
    if (plain) {
        request_undo(easy);
    } else {
        curl_easy_reset(easy);
        request_rules(easy, h);
    }
    h->spare[h->n_spare++] = easy;
}

/* Taken out of its multi handle before. */
static void call_free(struct http_call *c, bool fit)
{
    easy_give(c->http, c->easy, fit, c->plain);
    http_url_free(c->own_url);
    curl_slist_free_all(c->headers);
    str_done(&c->body);
    str_done(&c->head);
    free(c->method);
    free(c);
}

int http_start(struct http *h, const struct http_request *req, http_done_fn *done, void *arg,
               struct http_call **out, struct pawl_err *err)
{
    struct http_call *c = mem_zalloc(1, sizeof(*c));
    c->http = h;
    c->done = done;
    c->on_body = req->on_body;
    c->arg = arg;
    c->body = STR_INIT(req->max_body ? req->max_body : 1 << 20);
    int rc = req->parsed ? 0 : http_url_new(req->url, &c->own_url, err);
    c->url = req->parsed ? req->parsed : c->own_url;
    if (rc == 0)
        rc = request_set(c, req, err);
    if (rc == 0)
        rc = multi_add(req->allow_private ? &h->open : &h->strict, c, err);
    if (rc < 0) {
        call_free(c, false);
        return rc;
    }
    if (out)
        *out = c;
    return 0;
}

void http_cancel(struct http_call *call)
{
    multi_remove(call);
    call_free(call, false);
}

void call_finish(struct http_call *c, CURLcode code)
{
    struct http_result res;
    result_make(c, code, &res);
    multi_remove(c);
    c->done(c->arg, &res);
    call_free(c, code == CURLE_OK);
}
