#include "url_list.h"

#include "artifact.h"
#include "http.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- variants ---- */

static const struct sv mark = {"{url}", 5};

static int add_variant(struct variants *to, struct sv name, struct sv template,
                       struct pawl_err *err)
{
    struct pawl_err why = {0};
    if (artifact_name_check(name, &why) < 0)
        return err_set(err, PAWL_EUSAGE, "--variant: %s", why.msg);
    if (!template.n || !memmem(template.p, template.n, mark.p, mark.n)) {
        err_set(err, PAWL_EUSAGE, "--variant " SV_FMT ": its template has no {url}", SV_ARG(name));
        return err_hint(err, "such as raw='{url}?action=raw'");
    }
    for (size_t i = 0; i < to->n; i++)
        if (sv_eq(name, to->v[i].name))
            return err_set(err, PAWL_EUSAGE, "--variant " SV_FMT " is given twice", SV_ARG(name));
    to->v[to->n++] = (struct variant){name, template, sv_eq(template, mark)};
    return 0;
}

int variants_read(const struct cli *c, struct arena *a, struct variants *out, struct pawl_err *err)
{
    const char *word;
    size_t n = 0;
    while (args_nth(&c->args, "variant", n))
        n++;
    if (n > VARIANTS_MAX)
        return err_set(err, PAWL_EUSAGE, "more than %d variants", VARIANTS_MAX);
    struct variants got = {arena_zalloc(a, n + 1, sizeof(*got.v)), 0};
    for (size_t i = 0; (word = args_nth(&c->args, "variant", i)) != NULL; i++) {
        struct sv template, name = sv_cut(sv_of(word), '=', &template);
        if (!template.p)
            return err_set(err, PAWL_EUSAGE, "--variant is '%s'; VARIANT=TEMPLATE is expected",
                           word);
        if (add_variant(&got, name, template, err) < 0)
            return PAWL_EUSAGE;
    }
    if (!got.n && add_variant(&got, SV("body"), mark, err) < 0)
        return PAWL_EUSAGE;
    *out = got;
    return 0;
}

/* ---- one URL ---- */

void checked_url_init(struct checked_url *u)
{
    u->url = STR_INIT(STR_LINE);
    u->host = STR_INIT(STR_LINE);
}

void checked_url_done(struct checked_url *u)
{
    str_done(&u->url);
    str_done(&u->host);
}

/* The rules for out->url, and its host. */
static int check(struct checked_url *out, struct pawl_err *err)
{
    struct sv url = str_sv(&out->url);
    str_clear(&out->host);
    size_t bad = text_bad_utf8(url);
    if (bad < url.n)
        return err_set(err, PAWL_EINPUT,
                       url.p[bad] ? "a URL that is not UTF-8" : "a URL with a NUL in it");
    if (out->url.overflow || url.n > URL_MAX_BYTES)
        return err_set(err, PAWL_EINPUT, "a URL longer than %d bytes", URL_MAX_BYTES);
    int rc = http_url_host(str_cstr(&out->url), &out->host, err);
    return rc < 0 ? rc : name_check(str_sv(&out->host), "host", err);
}

int url_check(struct sv url, struct checked_url *out, struct pawl_err *err)
{
    str_clear(&out->url);
    str_add(&out->url, url);
    return check(out, err);
}

int variant_expand(const struct variant *v, struct sv url, struct checked_url *out,
                   struct pawl_err *err)
{
    struct sv rest = v->template;
    str_clear(&out->url);
    for (const char *at; rest.n && (at = memmem(rest.p, rest.n, mark.p, mark.n)) != NULL;) {
        size_t before = (size_t)(at - rest.p);
        str_add(&out->url, sv_make(rest.p, before));
        str_add(&out->url, url);
        rest = sv_make(at + mark.n, rest.n - before - mark.n);
    }
    str_add(&out->url, rest);
    return check(out, err);
}

/* ---- the list ---- */

int url_list_open(struct url_list *l, const struct cli *c, const char *name, struct pawl_err *err)
{
    struct stat st;
    bool standard = name && !strcmp(name, "-");
    *l = (struct url_list){.c = c, .name = name, .fd = -1, .again = !name};
    if (!name)
        return 0;
    if (!standard && (l->fd = open(name, O_RDONLY | O_CLOEXEC)) < 0)
        return err_errno(err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_EINPUT, errno, "%s", name);
    int fd = standard ? STDIN_FILENO : l->fd;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        url_list_done(l);
        return err_set(err, PAWL_EINPUT, "%s: is a folder", name);
    }
    /* Standard input may stand anywhere in its file, and others may share it. */
    l->again = !standard && S_ISREG(st.st_mode);
    l->size = l->again ? st.st_size : 0;
    l->name = standard ? "stdin" : name;
    lines_init(&l->in, fd, l->name);
    return 0;
}

void url_list_done(struct url_list *l)
{
    lines_done(&l->in);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

int url_list_rewind(struct url_list *l, struct pawl_err *err)
{
    l->next = 0;
    l->number = 0;
    l->refill = false;
    if (!l->name)
        return 0;
    if (lseek(l->fd, 0, SEEK_SET) < 0)
        return err_errno(err, PAWL_EIO, errno, "%s", l->name);
    lines_done(&l->in);
    lines_init(&l->in, l->fd, l->name);
    return 0;
}

/* Editors of another system begin a file with it. */
static const struct sv bom = {"\xef\xbb\xbf", 3};

static enum url_got next_argument(struct url_list *l, struct sv *out)
{
    if (l->next >= l->c->args.n_pos)
        return URL_END;
    *out = sv_of(l->c->args.pos[l->next++]);
    l->number++;
    return URL_ONE;
}

/* A line that is a URL, or what there is instead. */
static int next_line(struct url_list *l, struct sv *out, enum url_got *got, struct pawl_err *err)
{
    struct sv line;
    int rc = l->refill ? lines_refill(&l->in, err) : 0;
    l->refill = false;
    while (rc == 0) {
        switch (lines_next(&l->in, &line)) {
        case LINES_ONE:
            if (l->in.number == 1 && sv_starts(line, bom))
                line = sv_make(line.p + bom.n, line.n - bom.n);
            line = sv_trim(line);
            if (!line.n || line.p[0] == '#')
                continue;
            *out = line;
            *got = URL_ONE;
            l->number++;
            return 0;
        case LINES_TOO_LONG:
            return err_set(err, PAWL_EINPUT, "a URL longer than %d bytes", URL_MAX_BYTES);
        case LINES_NEED:
            *got = URL_PAUSE;
            l->refill = true;
            return 0;
        default:
            *got = URL_END;
            return 0;
        }
    }
    return rc;
}

int url_list_next(struct url_list *l, struct sv *out, enum url_got *got, struct pawl_err *err)
{
    if (l->name)
        return next_line(l, out, got, err);
    *got = next_argument(l, out);
    return 0;
}

int url_list_blame(const struct url_list *l, struct pawl_err *err)
{
    if (l->name)
        err_wrap(err, "%s:%lld", l->name, (long long)l->in.number);
    return PAWL_EINPUT;
}
