/* Any bytes as a duration and as a time. What is accepted is in bounds and parses back. */
#include "fuzz.h"

#include "clock.h"
#include "retry.h"
#include <assert.h>

static void check_duration(struct sv s)
{
    struct dur d, back;
    struct str text = STR_INIT(STR_LINE);
    if (dur_parse(s, true, &d, NULL) == 0) {
        assert(d.us >= -1 && d.us <= DUR_MAX_US);
        dur_format(d, &text);
        int rc = dur_parse(str_sv(&text), true, &back, NULL);
        assert(rc == 0 && back.us == d.us);
        dur_human(d, &text);
    }
    str_done(&text);
}

static void check_time(struct sv s)
{
    struct wall t, back, now = {(int64_t)1767323045 * 1000000};
    struct str text = STR_INIT(STR_LINE);
    if (wall_parse(s, now, &t, NULL) == 0) {
        assert(t.us >= 0);
        wall_format(t, &text);
        if (text.len == 24) { /* years up to 9999 */
            int rc = wall_parse(str_sv(&text), now, &back, NULL);
            assert(rc == 0 && back.us == t.us - t.us % 1000);
        }
    }
    str_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv s = sv_make((const char *)data, size);
    check_duration(s);
    check_time(s);
    struct dur after = retry_after_in_log(s);
    assert(after.us >= -1);
    return 0;
}
