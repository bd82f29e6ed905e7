#include "spark.h"

#include <strings.h>

#define SLOT_US ((int64_t)10000000)

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

struct spark spark_of(const struct report_view *r)
{
    struct spark s = {0};
    int64_t start = r->since.us - r->since.us % SLOT_US;
    int64_t slots = (r->now.us - r->since.us) / SLOT_US;
    s.each = DUR_US(ceil_div(slots > 0 ? slots : 1, SPARK_MAX) * SLOT_US);
    s.count = (int)ceil_div(r->now.us - start + 1, s.each.us);
    if (s.count > SPARK_MAX)
        s.count = SPARK_MAX; /* the last stretch takes what the first slot is longer */
    for (size_t i = 0; i < r->n_slots; i++) {
        int64_t at = (r->slots[i].at.us - start) / s.each.us;
        at = at < 0 ? 0 : at >= s.count ? s.count - 1 : at; /* a clock that was set */
        s.n[at] += r->slots[i].done + r->slots[i].skipped;
        if (s.n[at] > s.max)
            s.max = s.n[at];
    }
    return s;
}

void spark_draw(const struct spark *s, bool utf8, struct str *out)
{
    static const char *const signs[2][8] = {{"_", ".", ":", "-", "=", "+", "*", "#"},
                                            {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
    for (int i = 0; i < s->count; i++) {
        int64_t height = s->n[i] ? ceil_div(s->n[i] * 7, s->max) : 0;
        str_adds(out, signs[utf8][height]);
    }
}

void rate_format(double per_s, struct str *out)
{
    if (per_s >= 1)
        str_addf(out, "%.1f/s", per_s);
    else if (per_s > 0)
        str_addf(out, "%.1f/min", per_s * 60);
}

bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *v = getenv(names[i]);
        if (v && v[0])
            return strcasestr(v, "utf-8") != NULL || strcasestr(v, "utf8") != NULL;
    }
    return false;
}
