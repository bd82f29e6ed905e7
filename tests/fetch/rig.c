#include "rig.h"

#include "fd.h"
#include "json.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

const char *const HOST = "127.0.0.1", *const OTHER = "127.0.0.2";
struct rig rig;

static void event(void);

/* ---- the site ---- */

enum { PAGES_MAX = 64, ANSWERS_MAX = 4 };
static struct page_of {
    char path[64];
    struct str answers[ANSWERS_MAX];
    int n, hits;
    enum page_then then;
    struct str request;
} pages[PAGES_MAX];
static size_t n_pages;

struct listener {
    struct watch watch;
    int port;
};
static struct listener listeners[2];

struct conn {
    struct watch watch;
    struct str in, out;
    size_t sent;
    bool holding, closing, resetting;
    struct conn *next;
};
static struct conn *conns;

static struct page_of *find_page(const char *path)
{
    for (size_t i = 0; i < n_pages; i++)
        if (!strcmp(pages[i].path, path))
            return &pages[i];
    return NULL;
}

static struct page_of *new_page(const char *path)
{
    struct page_of *p = find_page(path);
    if (!p) {
        assert_true(n_pages < PAGES_MAX);
        p = &pages[n_pages++];
        *p = (struct page_of){.request = STR_INIT(1 << 20)};
        snprintf(p->path, sizeof(p->path), "%s", path);
    }
    for (int i = 0; i < p->n; i++)
        str_done(&p->answers[i]);
    p->n = 0;
    p->then = THEN_KEEP;
    return p;
}

static void add_filled(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (text[0] == '%' && text[1] == 'H')
            str_addf(out, "%s:%d", HOST, listeners[0].port);
        else if (text[0] == '%' && text[1] == 'O')
            str_addf(out, "%s:%d", OTHER, listeners[1].port);
        else {
            str_addc(out, *text);
            continue;
        }
        text++;
    }
}

void page_next(const char *path, const char *answer)
{
    struct page_of *p = find_page(path);
    assert_true(p && p->n < ANSWERS_MAX);
    p->answers[p->n] = STR_INIT(STR_OUTPUT);
    add_filled(&p->answers[p->n++], answer);
}

void page_then(const char *path, const char *answer, enum page_then then)
{
    struct page_of *p = new_page(path);
    p->then = then;
    page_next(path, answer);
}

void page(const char *path, const char *answer)
{
    page_then(path, answer, THEN_KEEP);
}

void page_body(const char *path, const char *status, const char *headers, struct sv body)
{
    struct page_of *p = new_page(path);
    struct str *s = &p->answers[p->n++];
    *s = STR_INIT(STR_OUTPUT);
    str_addf(s, "HTTP/1.1 %s\r\n", status);
    add_filled(s, headers);
    str_addf(s, "Content-Length: %zu\r\n\r\n", body.n);
    str_add(s, body);
}

int hits(const char *path)
{
    struct page_of *p = find_page(path);
    return p ? p->hits : 0;
}

const char *asked(const char *path)
{
    struct page_of *p = find_page(path);
    return p ? str_cstr(&p->request) : "";
}

static const char *url_of(const char *host, int port, const char *path)
{
    static char urls[8][256];
    static int next;
    char *url = urls[next++ % 8];
    snprintf(url, sizeof(urls[0]), "http://%s:%d%s", host, port, path);
    return url;
}

const char *at(const char *path)
{
    return url_of(HOST, listeners[0].port, path);
}

const char *at_other(const char *path)
{
    return url_of(OTHER, listeners[1].port, path);
}

static void hang_up(struct conn *c)
{
    struct conn **at_ = &conns;
    while (*at_ != c)
        at_ = &(*at_)->next;
    *at_ = c->next;
    if (c->resetting) {
        struct linger l = {.l_onoff = 1};
        setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    }
    loop_unwatch(rig.loop, &c->watch);
    close(c->watch.fd);
    str_done(&c->in);
    str_done(&c->out);
    free(c);
}

static void answer(struct conn *c)
{
    char path[64] = "";
    const char *none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    sscanf(str_cstr(&c->in), "%*s %63[^ ?]", path);
    struct page_of *p = find_page(path);
    if (!p) {
        p = new_page(path);
        page_next(path, none);
    }
    const struct str *s = &p->answers[p->hits < p->n ? p->hits : p->n - 1];
    p->hits++;
    str_clear(&p->request);
    str_add(&p->request, str_sv(&c->in));
    str_clear(&c->in);
    str_add(&c->out, str_sv(s));
    c->holding = p->then == THEN_HOLD;
    c->closing = p->then == THEN_CLOSE || p->then == THEN_RESET;
    c->resetting = p->then == THEN_RESET;
    event();
}

/* False: it is gone. */
static bool send_more(struct conn *c)
{
    while (c->sent < c->out.len) {
        ssize_t n = send(c->watch.fd, c->out.p + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    bool all = c->sent == c->out.len;
    if (all && c->closing) {
        hang_up(c);
        return false;
    }
    if (all) {
        str_clear(&c->out);
        c->sent = 0;
    }
    (void)!loop_watch(rig.loop, &c->watch, all ? EPOLLIN : EPOLLIN | EPOLLOUT, NULL);
    return true;
}

static bool whole(const struct str *request)
{
    const char *text = str_cstr(request), *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "Content-Length: ");
    size_t body = length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
    return end && request->len >= (size_t)(end + 4 - text) + body;
}

static void on_conn(struct watch *w, uint32_t events)
{
    struct conn *c = (struct conn *)w;
    char buf[4096];
    if (events & EPOLLOUT && !send_more(c))
        return;
    ssize_t n = recv(w->fd, buf, sizeof(buf), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        hang_up(c);
        return;
    }
    if (n < 0)
        return;
    str_add(&c->in, sv_make(buf, (size_t)n));
    if (!c->holding && whole(&c->in)) {
        answer(c);
        send_more(c);
    }
}

static void on_accept(struct watch *w, uint32_t events)
{
    (void)events;
    int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct conn *c = mem_zalloc(1, sizeof(*c));
    c->watch = (struct watch){.fd = fd, .on_event = on_conn};
    c->in = STR_INIT(STR_OUTPUT);
    c->out = STR_INIT(STR_OUTPUT);
    c->next = conns;
    conns = c;
    assert_int_equal(loop_watch(rig.loop, &c->watch, EPOLLIN, NULL), 0);
}

static void listen_at(struct listener *l, const char *address)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *l = (struct listener){.watch = {.fd = fd, .on_event = on_accept}, .port = ntohs(a.sin_port)};
    assert_int_equal(loop_watch(rig.loop, &l->watch, EPOLLIN, NULL), 0);
}

/* ---- the worker ---- */

struct fake_run {
    struct run run;
    struct lease lease;
    struct ended *out;
    int owed;
    bool over, cancelled;
};
static struct fake_run runs[256];
static size_t n_runs;
static struct timer cancel_timer, guard_timer;

/* An answer on its way. */
struct later {
    struct timer timer;
    struct fake_run *of;
    enum { LATER_ADMIT, LATER_RECALL, LATER_PREVIOUS, LATER_KEPT } what;
    void (*fn)(void);
    void *arg;
    struct admission admission;
    struct str value;
    struct kept kept;
    char name[80], type[80];
};

static int only = -1;

void rig_cancel_only(int which)
{
    only = which;
}

static void on_cancel(struct timer *t)
{
    (void)t;
    for (size_t i = 0; i < n_runs; i++)
        if (!runs[i].over && (only < 0 || only == (int)i)) {
            runs[i].cancelled = true;
            rig.handler->ops->cancel(rig.handler, &runs[i].run, CANCEL_ASKED);
        }
}

static void event(void)
{
    if (++rig.events != rig.cancel_at)
        return;
    cancel_timer.on_time = on_cancel;
    loop_timer_set(rig.loop, &cancel_timer, DUR_US(0));
}

static void deliver(struct timer *t)
{
    struct later *l = (struct later *)t;
    l->of->owed--;
    if (l->what == LATER_ADMIT)
        ((admission_fn *)l->fn)(l->arg, &l->admission);
    else if (l->what == LATER_RECALL)
        ((remembered_fn *)l->fn)(l->arg, l->value.len ? str_sv(&l->value) : SV_NONE);
    else if (l->what == LATER_PREVIOUS)
        ((previous_fn *)l->fn)(l->arg, rig.previous);
    else
        ((kept_fn *)l->fn)(l->arg, &l->kept);
    str_done(&l->value);
    free(l);
    event();
}

static struct later *answer_later(struct fake_run *of, int what, void (*fn)(void), void *arg)
{
    struct later *l = mem_zalloc(1, sizeof(*l));
    l->timer.on_time = deliver;
    l->of = of;
    l->what = what;
    l->fn = fn;
    l->arg = arg;
    l->value = STR_INIT(1 << 20);
    assert_false(of->over);
    of->owed++;
    loop_timer_set(rig.loop, &l->timer, DUR_US(0));
    return l;
}

struct sink {
    struct fake_run *of;
    struct str bytes;
    int writes;
};

static struct sink *fake_sink_open(struct run *r)
{
    struct sink *s = mem_zalloc(1, sizeof(*s));
    s->of = (struct fake_run *)r;
    s->bytes = STR_INIT(STR_OUTPUT);
    rig.sinks++;
    return s;
}

static int fake_sink_write(struct sink *s, struct sv bytes, struct pawl_err *err)
{
    str_add(&s->bytes, bytes);
    return ++s->writes == rig.full_at ? err_set(err, PAWL_EFULL, "no room") : 0;
}

static void fake_sink_drop(struct sink *s)
{
    str_done(&s->bytes);
    free(s);
    rig.sinks--;
}

static void fake_keep(struct sink *s, struct sv name, struct sv type, kept_fn *done, void *arg)
{
    struct later *l = answer_later(s->of, LATER_KEPT, (void (*)(void))done, arg);
    struct kept_body *k = &rig.kept;
    str_done(&k->bytes);
    k->bytes = s->bytes;
    snprintf(k->name, sizeof(k->name), SV_FMT, SV_ARG(name));
    snprintf(k->type, sizeof(k->type), SV_FMT, SV_ARG(type));
    l->kept = (struct kept){.rc = rig.keep_rc,
                            .message = "no room",
                            .what = {.name = sv_of(k->name),
                                     .type = type.p ? sv_of(k->type) : SV_NONE,
                                     .size = (int64_t)k->bytes.len,
                                     .stored = (int64_t)k->bytes.len,
                                     .place = SV("files/x")}};
    sha256(str_sv(&k->bytes), l->kept.what.sha256);
    free(s);
    rig.sinks--;
    rig.keeps++;
}

static void fake_keep_file(struct run *r, const char *path, struct sv name, struct sv type,
                           kept_fn *done, void *arg)
{
    (void)r, (void)path, (void)name, (void)type, (void)done, (void)arg;
    fail_msg("nothing here keeps files");
}

static void fake_admit(struct run *r, struct sv host, admission_fn *done, void *arg)
{
    struct later *l = answer_later((struct fake_run *)r, LATER_ADMIT, (void (*)(void))done, arg);
    size_t n = strlen(rig.admitted);
    snprintf(rig.admitted + n, sizeof(rig.admitted) - n, SV_FMT " ", SV_ARG(host));
    if ((size_t)rig.admits < rig.n_admissions)
        l->admission = rig.admissions[rig.admits];
    if (rig.strict_then)
        rig.config->fetch_allow_private = false;
    rig.admits++;
}

static void fake_pace(struct run *r, struct sv host, struct dur apart)
{
    (void)r;
    size_t n = strlen(rig.paced);
    snprintf(rig.paced + n, sizeof(rig.paced) - n, SV_FMT "=%lldms ", SV_ARG(host),
             (long long)apart.us / 1000);
}

/* What is remembered, one text for each key. */
static struct memory {
    char key[128];
    struct str value;
    struct dur ttl;
} memory[16];

static struct memory *memory_of(struct sv key)
{
    size_t i = 0;
    while (i < ARRAY_LEN(memory) - 1 && memory[i].key[0] && !sv_eq(sv_of(memory[i].key), key))
        i++;
    return &memory[i];
}

static void fake_recall(struct run *r, struct sv key, remembered_fn *done, void *arg)
{
    struct later *l = answer_later((struct fake_run *)r, LATER_RECALL, (void (*)(void))done, arg);
    rig.recalls++;
    str_add(&l->value, str_sv(&memory_of(key)->value));
}

static void fake_remember(struct run *r, struct sv key, struct sv value, struct dur ttl)
{
    struct memory *m = memory_of(key);
    (void)r;
    rig.remembers++;
    snprintf(m->key, sizeof(m->key), SV_FMT, SV_ARG(key));
    str_done(&m->value);
    m->value = STR_INIT(1 << 20);
    str_add(&m->value, value);
    m->ttl = ttl;
    snprintf(rig.remembered, sizeof(rig.remembered), "%s %llds " SV_FMT, m->key,
             (long long)ttl.us / 1000000, SV_ARG(value));
}

static void fake_previous(struct run *r, previous_fn *done, void *arg)
{
    answer_later((struct fake_run *)r, LATER_PREVIOUS, (void (*)(void))done, arg);
    rig.previouses++;
}

static const struct run_services services = {.sink_open = fake_sink_open,
                                             .sink_write = fake_sink_write,
                                             .sink_drop = fake_sink_drop,
                                             .keep = fake_keep,
                                             .keep_file = fake_keep_file,
                                             .admit = fake_admit,
                                             .pace = fake_pace,
                                             .recall = fake_recall,
                                             .remember = fake_remember,
                                             .previous = fake_previous};

static void copy(char *to, size_t n, struct sv s)
{
    snprintf(to, n, SV_FMT, SV_ARG(s));
}

static void copy_record(struct ended *o, const struct fetch_record *f)
{
    o->f = *f;
    copy(o->final_url, sizeof(o->final_url), f->final_url);
    copy(o->etag, sizeof(o->etag), f->etag);
    copy(o->modified, sizeof(o->modified), f->last_modified);
    copy(o->encoding, sizeof(o->encoding), f->encoding);
    copy(o->type, sizeof(o->type), f->content_type);
    copy(o->redirects, sizeof(o->redirects), f->redirects);
    copy(o->headers, sizeof(o->headers), f->headers);
    copy(o->address, sizeof(o->address), f->address);
    copy(o->version, sizeof(o->version), f->http_version);
}

static void check_json(struct sv text)
{
    AUTO_JSON struct json doc = {0};
    if (text.p)
        assert_int_equal(json_parse(&doc, text, NULL), 0);
}

static void on_finish(struct run *r, const struct run_result *res)
{
    struct fake_run *f = (struct fake_run *)r;
    struct ended *o = f->out;
    assert_false(f->over);
    assert_int_equal(f->owed, 0); /* no answer is outstanding */
    f->over = true;
    check_json(res->result);
    o->r = *res;
    copy(o->reason, sizeof(o->reason), res->reason);
    copy(o->result, sizeof(o->result), res->result);
    copy(o->peer, sizeof(o->peer), res->peer);
    if (res->fetch) {
        check_json(res->fetch->redirects);
        check_json(res->fetch->headers);
        copy_record(o, res->fetch);
    }
    rig.running--;
    if (++rig.finished >= rig.wanted)
        loop_stop(rig.loop);
}

static void on_guard(struct timer *t)
{
    (void)t;
    fail_msg("no end within 30 s");
}

static void start(const struct job_given *j, struct ended *out)
{
    struct fake_run *f = &runs[n_runs++];
    const char *host = j->host ? j->host : HOST;
    struct pawl_err err = {0};
    *f = (struct fake_run){.out = out,
                           .lease = {.payload = sv_of(j->payload),
                                     .fence = {j->fence ? j->fence : 1},
                                     .host = *host ? sv_of(host) : SV_NONE}};
    f->run = (struct run){.job = &f->lease,
                          .timeout = j->timeout.us ? j->timeout : DUR_NONE,
                          .finish = on_finish,
                          .services = &services};
    *out = (struct ended){.r = {.end = -1}};
    rig.running++;
    int rc = rig.handler->ops->start(rig.handler, &f->run, &err);
    if (rc == 0)
        return;
    f->over = true;
    out->r = (struct run_result){.end = RUN_FAILED,
                                 .cls = rc == PAWL_EINPUT ? CLASS_FATAL : CLASS_ERROR};
    snprintf(out->reason, sizeof(out->reason), "%s", err.msg);
    rig.finished++;
    rig.running--;
}

void rig_run(const struct job_given *jobs, size_t n, struct ended *out)
{
    n_runs = 0;
    rig.finished = 0;
    rig.wanted = (int)n;
    assert_true(n <= ARRAY_LEN(runs));
    for (size_t i = 0; i < n; i++)
        start(&jobs[i], &out[i]);
    guard_timer.on_time = on_guard;
    loop_timer_set(rig.loop, &guard_timer, DUR_S(30));
    if (rig.finished < rig.wanted)
        assert_int_equal(loop_run(rig.loop, NULL), 0);
    loop_timer_clear(rig.loop, &guard_timer);
    loop_timer_clear(rig.loop, &cancel_timer);
    assert_int_equal(rig.running, 0);
    assert_int_equal(rig.sinks, 0);
}

const struct ended *fetch(const char *payload)
{
    static struct ended e;
    struct job_given j = {.payload = payload};
    rig_run(&j, 1, &e);
    return &e;
}

const struct ended *get(const char *path, const char *more)
{
    char payload[4096];
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"%s}", at(path), more ? more : "");
    return fetch(payload);
}

void rig_again(void)
{
    struct rig fresh = {
        .loop = rig.loop, .config = rig.config, .handler = rig.handler, .kept = rig.kept};
    rig = fresh;
    str_clear(&rig.kept.bytes);
    for (size_t i = 0; i < n_pages; i++)
        pages[i].hits = 0;
}

void rig_remember(const char *key, const char *value)
{
    fake_remember(NULL, sv_of(key), sv_of(value), DUR_S(60));
    rig.remembers = 0;
}

void rig_forget(void)
{
    for (size_t i = 0; i < ARRAY_LEN(memory); i++) {
        str_done(&memory[i].value);
        memory[i] = (struct memory){0};
    }
}

void rig_begin(const char *const *flags, size_t n)
{
    const char *all[16] = {"fetch.allow_private=true"};
    struct pawl_err err = {0};
    assert_true(n < ARRAY_LEN(all));
    for (size_t i = 0; i < n; i++)
        all[i + 1] = flags[i];
    rig = (struct rig){0};
    assert_int_equal(loop_new(&rig.loop, NULL), 0);
    if (config_make("test", all, n + 1, &rig.config, &err) < 0)
        fail_msg("%s", err.msg);
    rig.handler = handler_fetch_new(rig.loop, rig.config);
    listen_at(&listeners[0], HOST);
    listen_at(&listeners[1], OTHER);
}

void rig_end(void)
{
    rig.handler->ops->free(rig.handler);
    while (conns)
        hang_up(conns);
    for (size_t i = 0; i < ARRAY_LEN(listeners); i++) {
        loop_unwatch(rig.loop, &listeners[i].watch);
        close(listeners[i].watch.fd);
    }
    for (size_t i = 0; i < n_pages; i++) {
        new_page(pages[i].path);
        str_done(&pages[i].request);
    }
    n_pages = 0;
    rig_forget();
    str_done(&rig.kept.bytes);
    config_free(rig.config);
    loop_free(rig.loop);
}
