/* Any bytes as a robots.txt, and a part of them as a path. What is written parses back to the same
 * answers; /robots.txt itself is always allowed. */
#include "fuzz.h"

#include "robots.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv text = sv_make((const char *)data, size), path;
    struct sv rest = sv_cut(text, '\n', &path);
    path = path.p ? sv_cut(path, '\n', &rest) : text;
    struct robots *r = robots_parse(text, SV("pawl"));
    struct str written = STR_INIT(STR_OUTPUT);
    robots_write(r, &written);
    struct robots *back = robots_parse(str_sv(&written), SV("other"));
    assert(robots_allows(r, SV("/robots.txt")) && robots_crawl_delay(r).us >= 0);
    if (written.len <= ROBOTS_MAX_BYTES) {
        assert(robots_allows(r, path) == robots_allows(back, path));
        assert(robots_crawl_delay(r).us == robots_crawl_delay(back).us);
    }
    robots_free(back);
    robots_free(r);
    str_done(&written);
    return 0;
}
