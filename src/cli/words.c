#include "words.h"

#include "mem.h"
#include <stdio.h>

void words_count(struct str *s, int64_t n)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)n);
    for (int i = 0; i < len; i++) {
        if (i && digits[i - 1] != '-' && (len - i) % 3 == 0)
            str_addc(s, ' ');
        str_addc(s, digits[i]);
    }
}

void words_bytes(struct str *s, int64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)n;
    size_t u = 0;
    for (; v >= 1024 && u + 1 < ARRAY_LEN(units); u++)
        v /= 1024;
    str_addf(s, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}
