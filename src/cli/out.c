#include "out.h"

#include "fd.h"
#include "mem.h"
#include "text.h"
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum { FLUSH_AT = 64 << 10 };

static int terminal_width(int fd)
{
    struct winsize ws;
    if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
        return ws.ws_col;
    return 80;
}

void out_init(struct out *o, int fd)
{
    *o = (struct out){.fd = fd, .buf = STR_INIT(STR_OUTPUT)};
    o->terminal = isatty(fd) == 1;
    o->width = o->terminal ? terminal_width(fd) : 0;
}

bool out_wants_color(enum out_color flag, int fd)
{
    if (flag != COLOR_AUTO)
        return flag == COLOR_ALWAYS;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((no && no[0]) || !term || !strcmp(term, "dumb"))
        return false;
    return isatty(fd) == 1;
}

void out_done(struct out *o)
{
    out_flush(o);
    str_done(&o->buf);
}

void out_flush(struct out *o)
{
    if (!o->failed && o->buf.overflow) {
        o->failed = true;
        o->failed_errno = EFBIG;
    }
    if (!o->failed && o->buf.len && fd_write_all(o->fd, o->buf.p, o->buf.len) < 0) {
        o->failed = true;
        o->failed_errno = errno;
    }
    str_clear(&o->buf);
}

void out_put(struct out *o, struct sv s)
{
    if (o->failed)
        return;
    str_add(&o->buf, s);
    if (o->buf.len >= FLUSH_AT && !o->keep)
        out_flush(o);
}

void out_putf(struct out *o, const char *fmt, ...)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    out_put(o, sv_make(line, n < 0 ? 0 : (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1));
}

void out_styled(struct str *to, bool color, enum style style, struct sv text)
{
    static const char *const codes[] = {"", "1", "2", "32", "31", "33", "34"};
    if (!color || style == STYLE_NONE || !text.n) {
        str_add(to, text);
        return;
    }
    str_addf(to, "\033[%sm", codes[style]);
    str_add(to, text);
    str_adds(to, "\033[0m");
}

/* Payloads are kept as they were written: one with line ends must not break JSON lines. */
static void put_json(struct out *o, struct sv json)
{
    bool lines = o->format == OUT_NDJSON && memchr(json.p, '\n', json.n);
    if (!o->terminal && !lines) {
        out_put(o, json);
        return;
    }
    AUTO_STR struct str safe = STR_INIT(STR_OUTPUT * 2);
    if (o->terminal)
        text_safe_json(&safe, json);
    else
        str_add(&safe, json);
    for (size_t i = 0; lines && i < safe.len; i++)
        if (safe.p[i] == '\n')
            safe.p[i] = ' ';
    out_put(o, str_sv(&safe));
}

void out_item(struct out *o, struct sv json)
{
    if (o->format == OUT_JSON)
        out_put(o, o->items ? SV(",\n ") : SV("["));
    put_json(o, json);
    if (o->format == OUT_NDJSON)
        out_put(o, SV("\n"));
    o->items++;
}

void out_items_end(struct out *o)
{
    if (o->format == OUT_JSON)
        out_put(o, o->items ? SV("]\n") : SV("[]\n"));
}

void out_object(struct out *o, struct sv json)
{
    put_json(o, json);
    out_put(o, SV("\n"));
}

void jw_kwall(struct jw *w, const char *name, struct wall t)
{
    AUTO_STR struct str s = STR_INIT(64);
    if (t.us)
        wall_format(t, &s);
    jw_kstring_or_null(w, name, t.us ? str_sv(&s) : SV_NONE);
}

void jw_kms(struct jw *w, const char *name, struct dur d)
{
    jw_name(w, name);
    if (d.us < 0)
        jw_null(w);
    else
        jw_int(w, d.us / 1000);
}
