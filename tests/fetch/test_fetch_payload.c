/* fetch: which payloads are taken. */
#include "rig.h"

static const char *const good[] = {
    "{\"url\":\"http://a.example/\"}",
    "{\"url\":\"https://a.example:8443/x?y#z\",\"variant\":\"raw\"}",
    "{\"url\":\"http://a.example/\",\"method\":\"PUT\",\"body\":\"\"}",
    "{\"url\":\"http://a.example/\",\"method\":\"HEAD\",\"headers\":{}}",
    "{\"url\":\"http://a.example/\",\"headers\":{\"Accept\":\"text/html\",\"X\":\"\"}}",
    "{\"url\":\"http://a.example/\",\"accept\":[200,404],\"reject\":[\"captcha\"]}",
    "{\"url\":\"http://a.example/\",\"max_body\":1,\"robots\":false}",
};
static const struct {
    const char *payload, *words;
} bad[] = {
    {"null", "an object with \"url\""},
    {"[]", "an object"},
    {"{", "payload"},
    {"{}", "\"url\" is missing"},
    {"{\"url\":1}", "\"url\" is a number"},
    {"{\"url\":\"\"}", "url"},
    {"{\"url\":\"a.example\"}", "url"},
    {"{\"url\":\"ftp://a.example/\"}", "only http and https"},
    {"{\"url\":\"http://u:p@a.example/\"}", "no user or password"},
    {"{\"url\":\"http://a.example:22/\"}", "ports are"},
    {"{\"url\":\"http://a.example/\",\"urls\":1}", "\"urls\" is not known"},
    {"{\"url\":\"http://a.example/\",\"variant\":\"../x\"}", "variant"},
    {"{\"url\":\"http://a.example/\",\"variant\":\"\"}", "variant"},
    {"{\"url\":\"http://a.example/\",\"variant\":null}", "variant"},
    {"{\"url\":\"http://a.example/\",\"method\":\"get\"}", "\"get\" is not one"},
    {"{\"url\":\"http://a.example/\",\"method\":\"CONNECT\"}", "CONNECT"},
    {"{\"url\":\"http://a.example/\",\"body\":\"x\"}", "a GET has no \"body\""},
    {"{\"url\":\"http://a.example/\",\"headers\":[]}", "headers"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"A B\":\"x\"}}", "name can have"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"\":\"x\"}}", "name can have"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"A:\":\"x\"}}", "name can have"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"A\":\"x\\r\\nB: y\"}}", "no header can have"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"A\":\"x\\u007f\"}}", "no header can have"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"A\":1}}", "headers"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"User-Agent\":\"x\"}}", "fetch.user_agent"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"HOST\":\"x\"}}", "pawl's own"},
    {"{\"url\":\"http://a.example/\",\"headers\":{\"Content-Length\":\"1\"}}", "pawl's own"},
    {"{\"url\":\"http://a.example/\",\"accept\":200}", "accept"},
    {"{\"url\":\"http://a.example/\",\"accept\":[]}", "empty"},
    {"{\"url\":\"http://a.example/\",\"accept\":[99]}", "100 to 599"},
    {"{\"url\":\"http://a.example/\",\"accept\":[600]}", "100 to 599"},
    {"{\"url\":\"http://a.example/\",\"accept\":[\"200\"]}", "100 to 599"},
    {"{\"url\":\"http://a.example/\",\"reject\":\"x\"}", "reject"},
    {"{\"url\":\"http://a.example/\",\"reject\":[\"\"]}", "empty text"},
    {"{\"url\":\"http://a.example/\",\"reject\":[1]}", "reject"},
    {"{\"url\":\"http://a.example/\",\"max_body\":0}", "max_body"},
    {"{\"url\":\"http://a.example/\",\"max_body\":1.5}", "max_body"},
    {"{\"url\":\"http://a.example/\",\"max_body\":-1}", "max_body"},
    {"{\"url\":\"http://a.example/\",\"robots\":\"no\"}", "robots"},
};

static char contact[] = "a@b.example", no_contact[] = "";

static void payloads_are_judged(void **state)
{
    (void)state;
    const struct config config = {.fetch_contact = contact};
    struct handler *h = handler_fetch_new(NULL, &config);
    struct pawl_err err;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        err = (struct pawl_err){0};
        int rc = h->ops->validate(h, SV("fetch"), sv_of(good[i]), &err);
        assert_true_msg(rc == 0, "%s: %s", good[i], err.msg);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err = (struct pawl_err){0};
        int rc = h->ops->validate(h, SV("fetch"), sv_of(bad[i].payload), &err);
        assert_true_msg(rc == PAWL_EINPUT && strstr(err.msg, bad[i].words), "%s: %d %s",
                        bad[i].payload, rc, err.msg);
    }
    h->ops->free(h);
}

static void hosts_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *host;
    } rows[] = {
        {"{\"url\":\"https://A.Example:8443/x\"}", "a.example"},
        {"{\"url\":\"http://127.1:8080/\",\"variant\":\"raw\"}", "127.0.0.1"},
        {"{\"url\":\"http://[::1]:8080/\"}", "::1"},
    };
    const struct config config = {.fetch_contact = contact};
    struct handler *h = handler_fetch_new(NULL, &config);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STR struct str host = STR_INIT(STR_LINE);
        h->ops->host(h, SV("fetch"), sv_of(rows[i].payload), &host);
        assert_string_equal(str_cstr(&host), rows[i].host);
    }
    h->ops->free(h);
}

static void others_are_told_who_asks(void **state)
{
    (void)state;
    const struct config config = {.fetch_contact = no_contact};
    struct handler *h = handler_fetch_new(NULL, &config);
    struct pawl_err err = {0};
    assert_int_equal(h->ops->validate(h, SV("fetch"), SV("{\"url\":\"http://a.example/\"}"), &err),
                     PAWL_ECONFIG);
    assert_non_null(strstr(err.msg, "fetch.contact is not set: a.example"));
    assert_int_equal(
        h->ops->validate(h, SV("fetch"), SV("{\"url\":\"http://localhost:8080/\"}"), &err), 0);
    h->ops->free(h);
}

static void bounds_hold(void **state)
{
    (void)state;
    const struct config config = {.fetch_contact = contact};
    struct handler *h = handler_fetch_new(NULL, &config);
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    str_adds(&s, "{\"url\":\"http://a.example/");
    for (int i = 0; i < 9000; i++)
        str_addc(&s, 'x');
    str_adds(&s, "\"}");
    assert_int_equal(h->ops->validate(h, SV("fetch"), str_sv(&s), NULL), PAWL_EINPUT);
    str_clear(&s);
    str_adds(&s, "{\"url\":\"http://a.example/\",\"reject\":[\"x\"");
    for (int i = 0; i < 40; i++)
        str_addf(&s, ",\"t%d\"", i);
    str_adds(&s, "]}");
    assert_int_equal(h->ops->validate(h, SV("fetch"), str_sv(&s), NULL), PAWL_EINPUT);
    h->ops->free(h);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct arena a;
    struct fetch_payload p;
    arena_init(&a);
    assert_int_equal(fetch_payload_read(sv_of(good[0]), &a, &p, NULL), 0);
    assert_sv(p.url, "http://a.example/");
    assert_sv(p.variant, "body");
    assert_sv(p.method, "GET");
    assert_true(!p.body.p && !p.n_headers && !p.n_accept && !p.n_reject);
    assert_true(p.max_body == 0 && p.robots == -1);
    assert_int_equal(fetch_payload_read(sv_of(good[5]), &a, &p, NULL), 0);
    assert_true(p.n_accept == 2 && p.accept[1] == 404);
    assert_sv(p.reject[0], "captcha");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_are_judged),      cmocka_unit_test(hosts_are_told),
        cmocka_unit_test(others_are_told_who_asks), cmocka_unit_test(bounds_hold),
        cmocka_unit_test(defaults_are_filled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
