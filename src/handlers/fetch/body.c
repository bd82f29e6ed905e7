/* The body of an answer while it comes: decoded, counted, looked through and written to the
 * sink; or, where the status says that it is not the content, its beginning for the message. */
#include "fetch_parts.h"

#include "mem.h"
#include "text.h"
#include <strings.h>

enum {
    NOTE_MAX = 4 << 10,
    DRAIN_MAX = 64 << 10, /* of a body that is not kept: so far the connection is worth more */
    SHOWN_MAX = 200,
};

static bool to_sink(struct fetch *f, struct sv bytes)
{
    struct body *b = &f->body;
    b->sink_rc = f->services->sink_write(b->sink, bytes, &b->sink_err);
    return b->sink_rc == 0;
}

bool keeps_wire(const struct fetch *f)
{
    return f->h->config->fetch_keep[0] == 'w';
}

static bool on_decoded(void *arg, struct sv bytes)
{
    struct fetch *f = arg;
    struct body *b = &f->body;
    if (!b->keep) {
        size_t room = NOTE_MAX - b->note.len;
        str_add(&b->note, sv_make(bytes.p, bytes.n < room ? bytes.n : room));
        return true;
    }
    b->rejected = reject_find(&b->reject, bytes);
    if (b->rejected.p)
        return false;
    return keeps_wire(f) || to_sink(f, bytes);
}

static int64_t max_body(const struct fetch *f)
{
    return f->p.max_body ? f->p.max_body : f->h->config->fetch_max_body;
}

static void open_body(struct fetch *f, int status, struct sv coding)
{
    struct body *b = &f->body;
    b->keep = status_accepted(&f->p, status) && strcmp(f->hop->method, "HEAD") != 0;
    b->note = STR_INIT(NOTE_MAX);
    reject_init(&b->reject, f->p.reject, f->p.n_reject);
    if (b->keep)
        b->sink = f->services->sink_open(f->run);
    enum decode_sum sum = !b->keep ? SUM_NONE : keeps_wire(f) ? SUM_BODY : SUM_WIRE;
    int64_t max = b->keep ? max_body(f) : 1 << 20;
    b->decode = decode_new(coding, max, sum, &f->h->room, on_decoded, f);
}

void body_opened(struct fetch *f)
{
    if (!f->body.decode)
        open_body(f, f->record.status, SV_NONE);
}

bool body_piece(void *fetch, struct sv bytes)
{
    struct fetch *f = fetch;
    struct body *b = &f->body;
    if (!b->decode) {
        AUTO_STR struct str coding = STR_INIT(STR_LINE);
        http_call_list(f->call, "content-encoding", &coding);
        open_body(f, http_call_status(f->call), str_sv(&coding));
    }
    if (b->keep && keeps_wire(f) && !to_sink(f, bytes))
        return false;
    if (b->trouble == DECODE_FINE)
        b->trouble = decode_write(b->decode, bytes);
    if (b->keep)
        return b->trouble == DECODE_FINE;
    return decode_wire_bytes(b->decode) < DRAIN_MAX && b->trouble == DECODE_FINE;
}

void body_done(struct fetch *f)
{
    struct body *b = &f->body;
    if (b->sink)
        f->services->sink_drop(b->sink);
    decode_free(b->decode);
    reject_done(&b->reject);
    str_done(&b->note);
    *b = (struct body){0};
}

/* ---- for a message ---- */

static bool is_html(struct sv type)
{
    return type.n >= 9 && !strncasecmp(type.p, "text/html", 9);
}

static bool is_text(struct sv type)
{
    static const char *const kinds[] = {"text/plain", "application/json",
                                        "application/problem+json", "application/xml", "text/xml"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (type.n >= strlen(kinds[i]) && !strncasecmp(type.p, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

static struct sv title_of(const char *html)
{
    const char *from = strcasestr(html, "<title"), *end;
    from = from ? strchr(from, '>') : NULL;
    end = from ? strchr(from, '<') : NULL;
    return end ? sv_make(from + 1, (size_t)(end - from - 1)) : SV_NONE;
}

static void add_words(struct str *out, struct sv text)
{
    AUTO_STR struct str plain = STR_INIT(NOTE_MAX);
    for (size_t i = 0; i < text.n; i++) {
        bool space = text.p[i] && strchr(" \t\r\n\f", text.p[i]);
        if (!space)
            str_addc(&plain, text.p[i]);
        else if (plain.len && plain.p[plain.len - 1] != ' ')
            str_addc(&plain, ' ');
    }
    struct sv words = sv_trim(str_sv(&plain));
    if (!words.n)
        return;
    str_adds(out, ": ");
    text_safe(out, words, SHOWN_MAX);
}

void body_say(const struct fetch *f, struct sv type, struct str *out)
{
    const struct str *note = &f->body.note;
    if (!note->len || f->body.keep)
        return;
    if (is_html(type))
        add_words(out, title_of(str_cstr(note)));
    else if (is_text(type))
        add_words(out, str_sv(note));
}
