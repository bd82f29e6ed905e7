/* Reading and matching of robots.txt. Rules and paths are brought into one form first, so that
 * matching compares bytes: unreserved characters plain, everything else that is not ASCII or has a
 * meaning of its own in a rule as %XX. */
#include "robots.h"

#include "mem.h"
#include <strings.h>

/* A rule's pattern in that form. "*" stands for any bytes; `anchored`: "$" stood at its end. */
struct rule {
    char *pattern;
    size_t n;      /* bytes of it */
    size_t weight; /* length that counts against others, "$" included */
    bool allow, anchored;
};

struct robots {
    struct rule *rules;
    size_t n, cap;
    size_t bytes;
    struct dur delay;
};

enum { DELAY_MAX_S = 10 * 365 * 86400 };

/* ---- one form for all paths ---- */

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

static void add_hex(struct str *out, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";
    str_addc(out, '%');
    str_addc(out, digits[c >> 4]);
    str_addc(out, digits[c & 15]);
}

/* A byte that was written as %XX. In a query ":", "/", "?" and "@" mean the same either way. */
static void add_encoded(struct str *out, unsigned char c, bool in_query)
{
    if (unreserved(c) || (in_query && c && strchr(":/?@", c)))
        str_addc(out, (char)c);
    else
        add_hex(out, c);
}

static void add_plain(struct str *out, unsigned char c, bool rule)
{
    if (c <= 0x20 || c >= 0x7f || (c == '*' && !rule) || strchr("$%\"<>\\^`{|}", c))
        add_hex(out, c);
    else
        str_addc(out, (char)c);
}

/* `rule`: a "*" is not itself. */
static void normalise(struct str *out, struct sv s, bool rule)
{
    bool in_query = false;
    for (size_t i = 0; i < s.n; i++) {
        int high = i + 2 < s.n && s.p[i] == '%' ? nibble(s.p[i + 1]) : -1;
        int low = high >= 0 ? nibble(s.p[i + 2]) : -1;
        if (low >= 0) {
            add_encoded(out, (unsigned char)(high * 16 + low), in_query);
            i += 2;
            continue;
        }
        in_query = in_query || s.p[i] == '?';
        add_plain(out, (unsigned char)s.p[i], rule);
    }
}

/* Resolves "." and ".." in place, as the client does before it asks (RFC 3986, 5.2.4). */
static size_t resolve_dots(char *p, size_t n)
{
    char *query = memchr(p, '?', n);
    size_t end = query ? (size_t)(query - p) : n, to = 0;
    for (size_t i = 0; i < end;) {
        size_t next = i + 1;
        while (next < end && p[next] != '/')
            next++;
        struct sv segment = sv_make(p + i, next - i);
        bool up = sv_eq(segment, SV("/..")), here = sv_eq(segment, SV("/."));
        if (up)
            while (to && p[--to] != '/')
                ;
        if (!up && !here) {
            memmove(p + to, p + i, segment.n);
            to += segment.n;
        } else if (next == end) {
            p[to++] = '/';
        }
        i = next;
    }
    memmove(p + to, p + end, n - end);
    return to + (n - end);
}

/* ---- reading ---- */

/* A group is a run of user-agent lines and the rules after it. */
struct reading {
    struct sv token;
    struct robots *own, *any; /* rules of groups that name the robot; of those for all */
    bool in_own, in_any;      /* the group being read */
    bool named;               /* some group names the robot */
    bool agents;              /* the last line of a group named a robot */
};

static bool same_word(struct sv a, const char *b)
{
    return a.n == strlen(b) && !strncasecmp(a.p, b, a.n);
}

struct sv robots_token(struct sv value)
{
    size_t n = 0;
    while (n < value.n && (((value.p[n] | 0x20) >= 'a' && (value.p[n] | 0x20) <= 'z') ||
                           value.p[n] == '-' || value.p[n] == '_'))
        n++;
    return sv_make(value.p, n);
}

static void read_agent(struct reading *r, struct sv value)
{
    if (!r->agents)
        r->in_own = r->in_any = false;
    r->agents = true;
    struct sv token = robots_token(value);
    if (token.n == r->token.n && token.n && !strncasecmp(token.p, r->token.p, token.n))
        r->in_own = r->named = true;
    if (value.n && value.p[0] == '*' && (value.n == 1 || value.p[1] == ' ' || value.p[1] == '\t'))
        r->in_any = true;
}

static void add_rule(struct robots *to, struct sv path, bool allow)
{
    AUTO_STR struct str s = STR_INIT(3 * (size_t)ROBOTS_MAX_BYTES);
    bool anchored = path.p[path.n - 1] == '$';
    normalise(&s, sv_make(path.p, path.n - anchored), true);
    ARRAY_GROW(to->rules, to->n, to->cap);
    to->rules[to->n++] = (struct rule){.pattern = mem_dup(str_cstr(&s), s.len),
                                       .n = s.len,
                                       .weight = s.len + anchored,
                                       .allow = allow,
                                       .anchored = anchored};
    to->bytes += s.len + 1;
}

static void read_rule(struct reading *r, struct sv path, bool allow)
{
    r->agents = false;
    if (!path.n || (path.p[0] != '/' && path.p[0] != '*'))
        return; /* matches nothing */
    if (r->in_own)
        add_rule(r->own, path, allow);
    if (r->in_any)
        add_rule(r->any, path, allow);
}

/* Decimal seconds; what is none counts as not said. */
static struct dur read_seconds(struct sv s)
{
    struct sv rest, whole = sv_cut(s, '.', &rest);
    int64_t seconds = 0, us = 0, unit = 100000;
    if (whole.n && sv_to_i64(whole, 0, DELAY_MAX_S, &seconds) < 0)
        return DUR_US(0);
    for (size_t i = 0; i < rest.n; i++, unit /= 10) {
        if (rest.p[i] < '0' || rest.p[i] > '9')
            return DUR_US(0);
        us += unit * (rest.p[i] - '0');
    }
    return DUR_US(seconds * 1000000 + us);
}

static void slow_down(struct robots *to, struct dur delay)
{
    if (delay.us > to->delay.us)
        to->delay = delay;
}

static void read_delay(struct reading *r, struct sv value)
{
    struct dur delay = read_seconds(value);
    r->agents = false;
    if (r->in_own)
        slow_down(r->own, delay);
    if (r->in_any)
        slow_down(r->any, delay);
}

/* Lines that mean nothing here (Sitemap, errors) neither begin nor end a group. */
static void read_line(struct reading *r, struct sv line)
{
    struct sv rest, text = sv_cut(line, '#', &rest);
    if (!memchr(text.p ? text.p : "", ':', text.n))
        return;
    struct sv value, key = sv_trim(sv_cut(text, ':', &value));
    value = sv_trim(value);
    if (same_word(key, "user-agent"))
        read_agent(r, value);
    else if (same_word(key, "disallow"))
        read_rule(r, value, false);
    else if (same_word(key, "allow"))
        read_rule(r, value, true);
    else if (same_word(key, "crawl-delay"))
        read_delay(r, value);
}

static void read_lines(struct reading *r, struct sv text)
{
    for (size_t i = 0; i < text.n;) {
        size_t end = i;
        while (end < text.n && text.p[end] != '\n' && text.p[end] != '\r')
            end++;
        read_line(r, sv_make(text.p + i, end - i));
        i = end + 1; /* of CR LF the rest is an empty line */
    }
}

/* The 500 KiB end somewhere in a line: half a rule would be another one. */
static struct sv cut(struct sv text)
{
    if (text.n <= ROBOTS_MAX_BYTES)
        return text;
    text.n = ROBOTS_MAX_BYTES;
    while (text.n && text.p[text.n - 1] != '\n' && text.p[text.n - 1] != '\r')
        text.n--;
    return text;
}

struct robots *robots_parse(struct sv text, struct sv token)
{
    struct reading r = {.token = token,
                        .own = mem_zalloc(1, sizeof(struct robots)),
                        .any = mem_zalloc(1, sizeof(struct robots))};
    if (sv_starts(text, SV("\xef\xbb\xbf")))
        text = sv_make(text.p + 3, text.n - 3);
    read_lines(&r, cut(text));
    robots_free(r.named ? r.any : r.own);
    return r.named ? r.own : r.any;
}

void robots_free(struct robots *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free(r->rules[i].pattern);
    free(r->rules);
    free(r);
}

/* ---- matching ---- */

/* Each piece between stars is looked for from where the one before ended: the first place is never
 * worse than a later one, so nothing is tried twice and the time is linear. */
static bool matches(const struct rule *rule, struct sv path)
{
    struct sv piece, rest = sv_make(rule->pattern, rule->n);
    const char *star = memchr(rest.p, '*', rest.n);
    if (!star)
        return rule->anchored ? sv_eq(rest, path) : sv_starts(path, rest);
    piece = sv_make(rest.p, (size_t)(star - rest.p));
    if (!sv_starts(path, piece))
        return false;
    path = sv_make(path.p + piece.n, path.n - piece.n);
    for (;;) {
        rest = sv_make(star + 1, rest.n - (size_t)(star + 1 - rest.p));
        star = memchr(rest.p, '*', rest.n);
        piece = sv_make(rest.p, star ? (size_t)(star - rest.p) : rest.n);
        if (!star && rule->anchored)
            return piece.n <= path.n && !memcmp(path.p + path.n - piece.n, piece.p, piece.n);
        const char *at = piece.n ? memmem(path.p, path.n, piece.p, piece.n) : path.p;
        if (!at || !star)
            return at;
        size_t used = (size_t)(at - path.p) + piece.n;
        path = sv_make(path.p + used, path.n - used);
    }
}

bool robots_allows(const struct robots *r, struct sv path)
{
    AUTO_STR struct str s = STR_INIT(3 * path.n + 2);
    const struct rule *best = NULL;
    if (!path.n || path.p[0] != '/')
        str_addc(&s, '/');
    normalise(&s, path, false);
    s.len = resolve_dots(s.p, s.len);
    struct sv asked = str_sv(&s);
    if (sv_eq(asked, SV("/robots.txt")))
        return true;
    for (size_t i = 0; i < r->n; i++) {
        const struct rule *rule = &r->rules[i];
        bool better =
            !best || rule->weight > best->weight || (rule->weight == best->weight && rule->allow);
        if (better && matches(rule, asked))
            best = rule;
    }
    return !best || best->allow;
}

struct dur robots_crawl_delay(const struct robots *r)
{
    return r->delay;
}

void robots_write(const struct robots *r, struct str *out)
{
    str_adds(out, "User-agent: *\n");
    for (size_t i = 0; i < r->n; i++) {
        const struct rule *rule = &r->rules[i];
        str_adds(out, rule->allow ? "Allow: " : "Disallow: ");
        str_add(out, sv_make(rule->pattern, rule->n));
        str_adds(out, rule->anchored ? "$\n" : "\n");
    }
    if (r->delay.us)
        str_addf(out, "Crawl-delay: %lld.%06lld\n", (long long)(r->delay.us / 1000000),
                 (long long)(r->delay.us % 1000000));
}

size_t robots_bytes(const struct robots *r)
{
    return sizeof(*r) + r->cap * sizeof(*r->rules) + r->bytes;
}
