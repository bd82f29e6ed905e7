/* Any bytes through the JSON reader. What it accepts must hold together: spans nest, every value
 * parses again on its own, every string survives the writer. Also read as a job. */
#include "fuzz.h"

#include "job.h"
#include "json.h"
#include "text.h"
#include <assert.h>

static void check_string(const struct json *doc, uint32_t i, struct arena *a)
{
    struct sv s = json_string(doc, i, a);
    struct json back = {0};
    struct str out = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&out);
    assert(text_bad_utf8(s) == s.n);
    jw_string(&w, s);
    int rc = json_parse(&back, str_sv(&out), NULL);
    assert(rc == 0 && sv_eq(json_string(&back, 0, a), s));
    json_done(&back);
    str_done(&out);
}

static void check_document(const struct json *doc, struct arena *a)
{
    assert(doc->n && doc->n <= JSON_MAX_NODES && json_end(doc, 0) == doc->n);
    for (uint32_t i = 0; i < doc->n; i++) {
        const struct json_node *n = &doc->nodes[i];
        assert(n->start < n->end && n->end <= doc->src.n && n->next > i && n->next <= doc->n);
        assert(i == 0 || n->start >= doc->nodes[i - 1].start);
        if (n->type == JSON_STRING && doc->n < 1000)
            check_string(doc, i, a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json doc = {0};
    struct arena a;
    arena_init(&a);
    struct sv src = sv_make((const char *)data, size);
    if (json_parse(&doc, src, NULL) == 0) {
        struct job_spec spec = job_spec_default();
        check_document(&doc, &a);
        if (job_spec_from_json(&doc, 0, (struct wall){1000000}, &a, &spec, NULL) == 0) {
            int rc = job_spec_check(&spec, NULL);
            assert(rc == 0);
        }
    }
    arena_done(&a);
    json_done(&doc);
    return 0;
}
