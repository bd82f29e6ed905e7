/* http: the host a URL names, in one spelling; which hosts are this machine's own. */
#include "../unit/unit.h"

#include "http.h"

static void hosts_have_one_name(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host, *origin;
    } rows[] = {
        {"http://example.org/a?b#c", "example.org", "http://example.org"},
        {"HTTPS://Example.ORG", "example.org", "https://example.org"},
        {"https://example.org.:443/", "example.org", "https://example.org"},
        {"http://example.org:80/", "example.org", "http://example.org"},
        {"http://example.org:8080/", "example.org", "http://example.org:8080"},
        {"https://example.org:80/", "example.org", "https://example.org:80"},
        {"http://ex%61mple.org/", "example.org", "http://example.org"},
        {"http://[::1]:8080/x", "::1", "http://[::1]:8080"},
        {"http://[2606:4700:0:0::1111]/", "2606:4700::1111", "http://[2606:4700::1111]"},
        {"http://127.1/", "127.0.0.1", "http://127.0.0.1"},
        {"http://0x7f000001:8080/", "127.0.0.1", "http://127.0.0.1:8080"},
        {"http://%30x7f.1/", "127.0.0.1", "http://127.0.0.1"},
        {"http://127.0.0.1./", "127.0.0.1", "http://127.0.0.1"},
        {"http://m\xc3\xbcnchen.example/", "xn--mnchen-3ya.example",
         "http://xn--mnchen-3ya.example"},
        {"http://M\xc3\x9cNCHEN.example/", "xn--mnchen-3ya.example",
         "http://xn--mnchen-3ya.example"},
        {"http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.1/", "127.0.0.1", "http://127.0.0.1"},
        {"http://a_b.example/", "a_b.example", "http://a_b.example"},
        {"http://face/", "face", "http://face"},
        {"http://1.example/", "1.example", "http://1.example"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STR struct str host = STR_INIT(STR_LINE), origin = STR_INIT(STR_LINE);
        struct pawl_err err = {0};
        struct http_url *u = NULL;
        if (http_url_new(rows[i].url, &u, &err) < 0)
            fail_msg("%s: %s", rows[i].url, err.msg);
        http_url_names(u, &host, &origin);
        http_url_free(u);
        assert_str(&host, rows[i].host);
        assert_str(&origin, rows[i].origin);
        str_clear(&host);
        assert_code(http_url_host(rows[i].url, &host, NULL), 0);
        assert_str(&host, rows[i].host);
    }
}

static void rules_hold_for_hosts_too(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "ftp://h/",
        "http://u:p@h/",
        "http://h:22/",
        "http://",
        "http://./",
        "http://../",
        "http://\xe3\x80\x82/",
        "h",
        "http://\xff\xfe.example/",
        "http://a%e2%80%ae.example/",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_STR struct str host = STR_INIT(STR_LINE);
        struct pawl_err err = {0};
        if (http_url_host(bad[i], &host, &err) != PAWL_EINPUT)
            fail_msg("\"%s\" is accepted: %s", bad[i], str_cstr(&host));
        assert_int_equal(host.len, 0);
        assert_true(strlen(err.msg) > 0);
    }
}

static void this_machine_is_known(void **state)
{
    (void)state;
    static const char *const here[] = {
        "localhost", "LocalHost",  "localhost.", "127.0.0.1", "127.255.255.255", "127.1",
        "0x7f.1",    "2130706433", "127.0.0.1.", "::1",       "[::1]",           "0:0:0:0:0:0:0:1"};
    static const char *const elsewhere[] = {
        "",    "localhost.example", "example.org", "128.0.0.1",    "10.0.0.1", "0.0.0.0", "::",
        "::2", "127.0.0.1.example", "127",         "notlocalhost", "[::1"};
    for (size_t i = 0; i < ARRAY_LEN(here); i++)
        if (!http_host_loopback(sv_of(here[i])))
            fail_msg("%s", here[i]);
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
        if (http_host_loopback(sv_of(elsewhere[i])))
            fail_msg("%s", elsewhere[i]);
    assert_false(http_host_loopback(SV_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_one_name),
        cmocka_unit_test(rules_hold_for_hosts_too),
        cmocka_unit_test(this_machine_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
