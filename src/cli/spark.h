/* Numbers over time in one line of text. */
#ifndef PAWL_CLI_SPARK_H
#define PAWL_CLI_SPARK_H

#include "store.h"

enum { SPARK_MAX = 60 };
/* Jobs that ended well, in equal stretches of a period. */
struct spark {
    int64_t n[SPARK_MAX];
    int count;
    struct dur each; /* length of a stretch: a multiple of ten seconds */
    int64_t max;
};
struct spark spark_of(const struct report_view *r);
/* One sign a stretch: nothing, then seven heights up to the maximum. */
void spark_draw(const struct spark *s, bool utf8, struct str *out);
/* "12.3/s" or "4.0/min"; nothing for 0. */
void rate_format(double per_s, struct str *out);
/* Does the environment's locale ask for UTF-8? */
bool locale_is_utf8(void);

#endif
