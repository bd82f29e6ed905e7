/* The command of `pawl each`: replacement strings found once, filled in for every input. */
#include "each.h"

#include "hash.h"
#include "text.h"
#include <ctype.h>
#include <stdio.h>

/* The replacement string at s: its length, or 0 when there is none. */
static size_t read_mark(const char *s, struct each_piece *out)
{
    size_t i = 1;
    int column = 0;
    if (s[0] != '{')
        return 0;
    if ((s[1] == '#' || s[1] == '%') && s[2] == '}') {
        *out = (struct each_piece){.what = s[1]};
        return 3;
    }
    for (; i <= 2 && isdigit((unsigned char)s[i]); i++)
        column = column * 10 + (s[i] - '0');
    if (i > 1 && (column < 1 || column > EACH_COLUMNS_MAX))
        return 0;
    static const struct {
        const char *text;
        char form;
    } forms[] = {{"}", 0}, {".}", '.'}, {"/}", '/'}, {"//}", 'd'}, {"/.}", 'b'}};
    for (size_t k = 0; k < ARRAY_LEN(forms); k++)
        if (!strncmp(s + i, forms[k].text, strlen(forms[k].text))) {
            *out = (struct each_piece){.what = 'a', .form = forms[k].form, .column = column};
            return i + strlen(forms[k].text);
        }
    return 0;
}

static void add_piece(struct each_word *w, struct each_piece p)
{
    ARRAY_GROW(w->pieces, w->n, w->cap);
    w->pieces[w->n++] = p;
}

/* True when something is filled in. */
static bool read_word(struct each_template *t, const char *s)
{
    bool found = false;
    ARRAY_GROW(t->words, t->n, t->cap);
    struct each_word *w = &t->words[t->n++];
    *w = (struct each_word){0};
    const char *from = s;
    while (*s) {
        struct each_piece p;
        size_t n = read_mark(s, &p);
        if (!n) {
            s++;
            continue;
        }
        if (s > from)
            add_piece(w, (struct each_piece){.text = sv_make(from, (size_t)(s - from))});
        add_piece(w, p);
        t->slot |= p.what == '%';
        found = true;
        from = s += n;
    }
    if (s > from)
        add_piece(w, (struct each_piece){.text = sv_make(from, (size_t)(s - from))});
    return found;
}

static void name_it(struct each_template *t, char *const *words, size_t n, struct sv cwd)
{
    AUTO_STR struct str all = STR_INIT(STR_OUTPUT);
    unsigned char digest[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    str_add(&all, cwd);
    for (size_t i = 0; i < n; i++) {
        str_addc(&all, '\0');
        str_adds(&all, words[i]);
    }
    sha256(str_sv(&all), digest);
    hex_encode(digest, SHA256_LEN, hex);
    memcpy(t->hash, hex, EACH_HASH);
    t->hash[EACH_HASH] = '\0';
    snprintf(t->mark, sizeof(t->mark), "{%%%s}", t->hash);
}

void each_template_init(struct each_template *t, char *const *words, size_t n, struct sv cwd)
{
    bool found = false;
    *t = (struct each_template){.naked = n == 0};
    name_it(t, words, n, cwd);
    t->shell = n == 0 || (n == 1 && strpbrk(words[0], " \t\n|&;<>()$`\\\"'*?[]#~=!") != NULL);
    for (size_t i = 0; i < n; i++)
        found |= read_word(t, words[i]);
    if (found)
        return;
    if (!t->shell)
        read_word(t, "{}");
    else if (n == 1)
        add_piece(&t->words[0], (struct each_piece){.text = SV(" ")});
    if (n == 0)
        read_word(t, "{}");
    else if (t->shell)
        add_piece(&t->words[0], (struct each_piece){.what = 'a'});
}

void each_template_done(struct each_template *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->words[i].pieces);
    free(t->words);
    *t = (struct each_template){0};
}

/* ---- filling in ---- */

static const char *last(struct sv s, char c)
{
    return s.n ? memrchr(s.p, c, s.n) : NULL;
}

static struct sv base_name(struct sv s)
{
    const char *slash = last(s, '/');
    return slash ? sv_make(slash + 1, (size_t)(s.p + s.n - slash - 1)) : s;
}

static struct sv without_ending(struct sv s)
{
    const char *dot = last(s, '.'), *slash = last(s, '/');
    return dot && (!slash || dot > slash) ? sv_make(s.p, (size_t)(dot - s.p)) : s;
}

static struct sv folder_of(struct sv s)
{
    const char *slash = last(s, '/');
    if (!slash)
        return SV(".");
    return slash == s.p ? SV("/") : sv_make(s.p, (size_t)(slash - s.p));
}

static struct sv shaped(struct sv s, char form)
{
    switch (form) {
    case '.':
        return without_ending(s);
    case '/':
        return base_name(s);
    case 'd':
        return folder_of(s);
    case 'b':
        return without_ending(base_name(s));
    default:
        return s;
    }
}

/* Quoted for sh, as GNU parallel does it. */
static void put_quoted(struct str *out, struct sv s)
{
    if (text_is_word(s, "_-+./:@%,"))
        str_add(out, s);
    else
        text_quoted(out, s);
}

static void put_value(const struct each_template *t, struct sv value, char form, struct str *out)
{
    if (t->shell && !t->naked)
        put_quoted(out, shaped(value, form));
    else
        str_add(out, shaped(value, form));
}

static void put_piece(const struct each_template *t, const struct each_piece *p,
                      const struct each_input *in, struct str *out)
{
    size_t column = (size_t)p->column;
    if (!p->what) {
        str_add(out, p->text);
    } else if (p->what == '#') {
        str_addi(out, in->seq);
    } else if (p->what == '%') {
        str_adds(out, t->mark);
    } else if (column) {
        if (column <= in->n)
            put_value(t, in->column[column - 1], p->form, out);
    } else {
        for (size_t i = 0; i < in->n; i++) {
            if (i)
                str_addc(out, ' ');
            put_value(t, in->column[i], p->form, out);
        }
    }
}

/* A word that is nothing but {} becomes as many words as there are columns. */
static bool is_all(const struct each_word *w)
{
    return w->n == 1 && w->pieces[0].what == 'a' && !w->pieces[0].column;
}

size_t each_expand(const struct each_template *t, const struct each_input *in, struct str *words)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct each_word *w = &t->words[i];
        if (!t->shell && is_all(w)) {
            for (size_t k = 0; k < in->n; k++, n++) {
                put_value(t, in->column[k], w->pieces[0].form, words);
                str_addc(words, '\0');
            }
            continue;
        }
        for (size_t k = 0; k < w->n; k++)
            put_piece(t, &w->pieces[k], in, words);
        str_addc(words, '\0');
        n++;
    }
    return n;
}

static void put_replaced(struct str *out, struct sv s, const char *mark, const char *by)
{
    size_t n = strlen(mark);
    const char *at;
    while (s.n && (at = memmem(s.p, s.n, mark, n)) != NULL) {
        str_add(out, sv_make(s.p, (size_t)(at - s.p)));
        str_adds(out, by);
        s = sv_make(at + n, s.n - (size_t)(at - s.p) - n);
    }
    str_add(out, s);
}

void each_show_command(const struct each_template *t, struct sv words, const char *slot,
                       struct str *out)
{
    AUTO_STR struct str word = STR_INIT(STR_OUTPUT);
    for (size_t at = 0; at < words.n;) {
        struct sv w = sv_of(words.p + at);
        str_clear(&word);
        put_replaced(&word, w, t->mark, slot);
        if (at)
            str_addc(out, ' ');
        if (t->shell)
            str_add(out, str_sv(&word));
        else
            put_quoted(out, word.len ? str_sv(&word) : SV(""));
        at += w.n + 1;
    }
}
