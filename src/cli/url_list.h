/* URLs for `fetch` and `plan`: the arguments, a file or standard input, one a line, in constant
 * memory; and the variants each is asked for in. */
#ifndef PAWL_CLI_URL_LIST_H
#define PAWL_CLI_URL_LIST_H

#include "cli.h"
#include "lines.h"
#include "mem.h"

/* ---- variants ---- */

enum { VARIANTS_MAX = 100 };
struct variant {
    struct sv name, template;
    bool plain; /* the template is the URL itself */
};
struct variants {
    struct variant *v;
    size_t n;
};
/* --variant VARIANT=TEMPLATE…, else body={url}. Views point into argv and the arena. USAGE. */
PAWL_MUST_USE int variants_read(const struct cli *c, struct arena *a, struct variants *out,
                                struct pawl_err *err);
#define VARIANT_OPT                                                                                \
    {                                                                                              \
        "variant", 0, "VARIANT=TEMPLATE",                                                          \
            "fetch TEMPLATE, in which {url} stands for the URL, and keep it as VARIANT; "          \
            "repeatable; "                                                                         \
            "body={url} unless given"                                                              \
    }

/* A URL that keeps the rules of http.h, and its host as limits know it. */
struct checked_url {
    struct str url, host;
};
void checked_url_init(struct checked_url *u);
void checked_url_done(struct checked_url *u);
/* What the variant asks for, in *out. INPUT. */
PAWL_MUST_USE int variant_expand(const struct variant *v, struct sv url, struct checked_url *out,
                                 struct pawl_err *err);
/* INPUT naming the URL. */
PAWL_MUST_USE int url_check(struct sv url, struct checked_url *out, struct pawl_err *err);

/* ---- the list ---- */

struct url_list {
    const struct cli *c;
    const char *name; /* of the file; NULL: the arguments are the URLs */
    size_t next;      /* argument */
    struct lines in;
    int fd;         /* to be closed; -1: none */
    bool again;     /* it can be read twice */
    bool refill;    /* URL_PAUSE was said */
    int64_t size;   /* of the file; 0: unknown */
    int64_t number; /* URLs given so far */
};
enum url_got {
    URL_ONE,   /* *out lasts until the next call */
    URL_PAUSE, /* nothing more right now: finish what there is, then go on */
    URL_END,
};
/* `name` NULL: the arguments; "-": standard input. */
PAWL_MUST_USE int url_list_open(struct url_list *l, const struct cli *c, const char *name,
                                struct pawl_err *err);
void url_list_done(struct url_list *l);
/* Blank lines and those that begin with # are passed over. A line beyond all bounds: INPUT. */
PAWL_MUST_USE int url_list_next(struct url_list *l, struct sv *out, enum url_got *got,
                                struct pawl_err *err);
PAWL_MUST_USE int url_list_rewind(struct url_list *l, struct pawl_err *err);
/* Put "FILE:LINE" before the message, where there is a file. */
int url_list_blame(const struct url_list *l, struct pawl_err *err);

#endif
