/* fetch: robots.txt (RFC 9309), a table of what it allows. */
#include "../unit/unit.h"

#include "mem.h"
#include "robots.h"

#define YES true
#define NO  false

static const struct {
    const char *text, *path;
    bool allowed;
} cases[] = {
    /* nothing said */
    {"", "/", YES},
    {"", "/any?x", YES},
    {"User-agent: *\n", "/a", YES},
    {"User-agent: *\nDisallow:\n", "/a", YES},
    {"Disallow: /\n", "/a", YES}, /* in no group */
    {"User-agent: other\nDisallow: /\n", "/a", YES},
    {"User-agent: *\nDisallow: /\n", "/a", NO},
    {"User-agent: *\nDisallow: /\n", "/", NO},
    {"User-agent: *\nDisallow: /\n", "/robots.txt", YES},
    {"User-agent: *\nDisallow: /\n", "/robots.txt?x", NO},
    {"User-agent: *\nDisallow: /\n", "", NO},
    {"User-agent: *\nDisallow: /\n", "?q", NO},
    /* the RFC's example of groups (5.1), with our name in place of its robots' */
    {"User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n"
     "User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n",
     "/example/x", NO},
    {"User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n",
     "/publications/x", YES},
    {"User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n", "/a/b.gif",
     NO},
    {"User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n", "/a/b.gif?c",
     YES},
    {"User-Agent: pawl\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n",
     "/example/page.html", YES},
    {"User-Agent: pawl\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n",
     "/example/allowed.gif", YES},
    {"User-Agent: pawl\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n",
     "/example/", NO},
    {"User-Agent: barbot\nUser-Agent: pawl\nDisallow: /example/page.html\n\nUser-Agent: quxbot\n",
     "/example/page.html", NO},
    {"User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\nUser-Agent: pawl\n\n",
     "/example/page.html", YES},
    /* the longest match (5.2) */
    {"User-Agent: pawl\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n",
     "/example/page/disallowed.gif", NO},
    {"User-Agent: pawl\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n",
     "/example/page/x", YES},
    {"User-agent: *\nAllow: /p\nDisallow: /\n", "/page", YES},
    {"User-agent: *\nDisallow: /\nAllow: /p\n", "/page", YES},
    {"User-agent: *\nAllow: /folder\nDisallow: /folder\n", "/folder/page", YES},
    {"User-agent: *\nDisallow: /folder\nAllow: /folder\n", "/folder/page", YES},
    {"User-agent: *\nAllow: /page\nDisallow: /*.htm\n", "/page.htm", NO},
    {"User-agent: *\nAllow: /page\nDisallow: /*.ph\n", "/page.php5", YES},
    {"User-agent: *\nAllow: /$\nDisallow: /\n", "/", YES},
    {"User-agent: *\nAllow: /$\nDisallow: /\n", "/page.htm", NO},
    {"User-agent: *\nDisallow: /a\nAllow: /a$\n", "/a", YES},
    {"User-agent: *\nDisallow: /a\nAllow: /a$\n", "/ab", NO},
    /* groups of one robot are one (2.2.1) */
    {"User-agent: pawl\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n\nUser-agent: PAWL\nDisallow: "
     "/c\n",
     "/a", NO},
    {"User-agent: pawl\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n\nUser-agent: PAWL\nDisallow: "
     "/c\n",
     "/b", YES},
    {"User-agent: pawl\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n\nUser-agent: PAWL\nDisallow: "
     "/c\n",
     "/c", NO},
    {"User-agent: *\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", "/a", NO},
    {"User-agent: *\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", "/b", NO},
    {"User-agent: *\nDisallow: /\nUser-agent: pawl\nAllow: /x\n", "/y", YES}, /* only its own */
    {"User-agent: pawl\n\nUser-agent: *\nDisallow: /\n", "/a", NO},           /* one group of two */
    {"User-agent: pawl\nDisallow:\n\nUser-agent: *\nDisallow: /\n", "/a", YES},
    /* names */
    {"user-AGENT: PaWl\ndisALLOW: /\n", "/a", NO},
    {"User-agent: pawl/0.1\nDisallow: /\n", "/a", NO},
    {"User-agent: pawl (all)\nDisallow: /\n", "/a", NO},
    {"User-agent: pawlbot\nDisallow: /\n", "/a", YES},
    {"User-agent: paw\nDisallow: /\n", "/a", YES},
    {"User-agent: my pawl\nDisallow: /\n", "/a", YES},
    {"User-agent: * # all\nDisallow: /\n", "/a", NO},
    {"User-agent: *bot\nDisallow: /\n", "/a", YES},
    {"User-agent:\nDisallow: /\n", "/a", YES},
    /* lines */
    {"User-agent: *\rDisallow: /a\rDisallow: /b\r", "/b", NO},
    {"User-agent: *\r\nDisallow: /a\r\nDisallow: /b\r\n", "/a", NO},
    {"User-agent: *\n\n\nDisallow: /a", "/a", NO}, /* no line feed at the end */
    {"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", "/a", NO},
    {"   User-agent  :  *  \n\tDisallow\t:\t/a\t\n", "/a", NO},
    {"User-agent: *\nDisallow: /a # not this: /b\n", "/b", YES},
    {"User-agent: *\nDisallow: /a # not this: /b\n", "/a", NO},
    {"# User-agent: x\nUser-agent: *\n# Disallow: /b\nDisallow: /a\n", "/b", YES},
    {"User-agent: *\nSitemap: https://x/s.xml\nDisallow: /a\n", "/a", NO},
    {"User-agent: pawl\nSitemap: x\nUser-agent: other\nDisallow: /a\n", "/a", NO},
    {"User-agent: *\nnonsense\nDisallow /b\n: /c\nDisallow: /a\n", "/a", NO},
    {"User-agent: *\nnonsense\nDisallow /b\n: /c\nDisallow: /a\n", "/b", YES},
    {"<html><body>Not found</body></html>", "/a", YES},
    {"User-agent: *\nDisallow: a\n", "/a", YES}, /* no path */
    {"User-agent: other\nCrawl-delay: 3\nUser-agent: pawl\nDisallow: /a\n", "/a", NO},
    {"User-agent: pawl\nCrawl-delay: 3\nUser-agent: other\nDisallow: /a\n", "/a", YES},
    /* paths are prefixes, with case */
    {"User-agent: *\nDisallow: /fish\n", "/fish", NO},
    {"User-agent: *\nDisallow: /fish\n", "/fish.html", NO},
    {"User-agent: *\nDisallow: /fish\n", "/fish/salmon.html", NO},
    {"User-agent: *\nDisallow: /fish\n", "/fishheads", NO},
    {"User-agent: *\nDisallow: /fish\n", "/fish.php?id=a", NO},
    {"User-agent: *\nDisallow: /fish\n", "/Fish.asp", YES},
    {"User-agent: *\nDisallow: /fish\n", "/catfish", YES},
    {"User-agent: *\nDisallow: /fish\n", "/?id=fish", YES},
    {"User-agent: *\nDisallow: /fish\n", "/desert/fish", YES},
    {"User-agent: *\nDisallow: /fish/\n", "/fish", YES},
    {"User-agent: *\nDisallow: /fish/\n", "/fish/?x", NO},
    {"User-agent: *\nDisallow: /a?x=1\n", "/a?x=12", NO},
    {"User-agent: *\nDisallow: /a?x=1\n", "/a", YES},
    /* "*" and "$" (2.2.3) */
    {"User-agent: *\nDisallow: /fish*\n", "/fishheads", NO},
    {"User-agent: *\nDisallow: /*.php\n", "/index.php", NO},
    {"User-agent: *\nDisallow: /*.php\n", "/folder/any.php.file.html", NO},
    {"User-agent: *\nDisallow: /*.php\n", "/filename.php/", NO},
    {"User-agent: *\nDisallow: /*.php\n", "/", YES},
    {"User-agent: *\nDisallow: /*.php\n", "/windows.PHP", YES},
    {"User-agent: *\nDisallow: /*.php$\n", "/filename.php", NO},
    {"User-agent: *\nDisallow: /*.php$\n", "/filename.php?a", YES},
    {"User-agent: *\nDisallow: /*.php$\n", "/filename.php.php", NO},
    {"User-agent: *\nDisallow: /fish*.php\n", "/fishheads/catfish.php?p", NO},
    {"User-agent: *\nDisallow: /fish*.php\n", "/Fish.PHP", YES},
    {"User-agent: *\nDisallow: /a*b*c$\n", "/a1b2c", NO},
    {"User-agent: *\nDisallow: /a*b*c$\n", "/a1b2c3", YES},
    {"User-agent: *\nDisallow: /a*b*c$\n", "/a1c2b", YES},
    {"User-agent: *\nDisallow: /a*ab$\n", "/ab", YES}, /* bytes are not used twice */
    {"User-agent: *\nDisallow: /a*ab$\n", "/aab", NO},
    {"User-agent: *\nDisallow: *\n", "/x", NO},
    {"User-agent: *\nDisallow: **\n", "/x", NO},
    {"User-agent: *\nDisallow: *$\n", "/x", NO},
    {"User-agent: *\nDisallow: /**/x\n", "/a/x", NO},
    {"User-agent: *\nDisallow: /a$b\n", "/a$b", NO}, /* elsewhere it is itself */
    {"User-agent: *\nDisallow: /a$b\n", "/a", YES},
    {"User-agent: *\nDisallow: *q\n", "/p", YES},
    /* percent-encoding (2.2.2), the RFC's table both ways */
    {"User-agent: *\nDisallow: /foo/bar?baz=quz\n", "/foo/bar?baz=quz", NO},
    {"User-agent: *\nDisallow: /foo/bar?baz=https://foo.bar\n",
     "/foo/bar?baz=https%3A%2F%2Ffoo.bar", NO},
    {"User-agent: *\nDisallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar\n",
     "/foo/bar?baz=https://foo.bar", NO},
    {"User-agent: *\nDisallow: /foo/bar/\xe3\x83\x84\n", "/foo/bar/%E3%83%84", NO},
    {"User-agent: *\nDisallow: /foo/bar/%E3%83%84\n", "/foo/bar/\xe3\x83\x84", NO},
    {"User-agent: *\nDisallow: /foo/bar/%e3%83%84\n", "/foo/bar/%E3%83%84", NO},
    {"User-agent: *\nDisallow: /foo/bar/%62%61%7A\n", "/foo/bar/baz", NO},
    {"User-agent: *\nDisallow: /foo/bar/baz\n", "/foo/bar/%62%61%7A", NO},
    {"User-agent: *\nDisallow: /a%2Fb\n", "/a/b", YES}, /* a slash in a segment is none */
    {"User-agent: *\nDisallow: /a%2fb\n", "/a%2Fb", NO},
    {"User-agent: *\nDisallow: /file-with-a-%2A.html\n", "/file-with-a-*.html", NO},
    {"User-agent: *\nDisallow: /file-with-a-%2A.html\n", "/file-with-a-x.html", YES},
    {"User-agent: *\nDisallow: /foo-%24\n", "/foo-$", NO},
    {"User-agent: *\nDisallow: /foo-%24\n", "/foo-", YES},
    {"User-agent: *\nDisallow: /100%\n", "/100%", NO},
    {"User-agent: *\nDisallow: /100%25\n", "/100%", NO},
    {"User-agent: *\nDisallow: /%zz\n", "/%zz", NO},
    {"User-agent: *\nDisallow: /a b\n", "/a%20b", NO},
    {"User-agent: *\nDisallow: /~x\n", "/%7Ex", NO},
    {"User-agent: *\nDisallow: /x/*/y\n", "/x/?u=/y", NO},
    /* what is asked for has no dot segments */
    {"User-agent: *\nDisallow: /private\n", "/x/../private", NO},
    {"User-agent: *\nDisallow: /private\n", "/./private", NO},
    {"User-agent: *\nDisallow: /private\n", "/x/%2e%2E/private/y", NO},
    {"User-agent: *\nDisallow: /private\n", "/../../private", NO},
    {"User-agent: *\nDisallow: /private\n", "/private/..", YES},
    {"User-agent: *\nDisallow: /private\n", "/a?/../private", YES},
    {"User-agent: *\nDisallow: /a/\n", "/a/b/..", NO},
};

static bool allows(const char *text, const char *path)
{
    struct robots *r = robots_parse(sv_of(text), SV("pawl"));
    bool yes = robots_allows(r, sv_of(path));
    AUTO_STR struct str written = STR_INIT(STR_OUTPUT);
    robots_write(r, &written);
    struct robots *again = robots_parse(str_sv(&written), SV("pawl"));
    assert_true_msg(robots_allows(again, sv_of(path)) == yes, "written: %s", str_cstr(&written));
    assert_int_equal(robots_crawl_delay(again).us, robots_crawl_delay(r).us);
    robots_free(again);
    robots_free(r);
    return yes;
}

static void rules_are_as_the_rfc_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_true_msg(allows(cases[i].text, cases[i].path) == cases[i].allowed,
                        "%s is %s by:\n%s", cases[i].path, cases[i].allowed ? "refused" : "allowed",
                        cases[i].text);
}

static void crawl_delay_is_of_the_group(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } delays[] = {
        {"User-agent: *\nCrawl-delay: 10\n", 10000},
        {"User-agent: *\ncrawl-DELAY: 0.5\n", 500},
        {"User-agent: *\nCrawl-delay: 1.25 # s\n", 1250},
        {"User-agent: *\nCrawl-delay: .5\n", 500},
        {"User-agent: *\nCrawl-delay: 2.\n", 2000},
        {"User-agent: *\nCrawl-delay: -1\n", 0},
        {"User-agent: *\nCrawl-delay: 1e3\n", 0},
        {"User-agent: *\nCrawl-delay: soon\n", 0},
        {"User-agent: *\nCrawl-delay: 1.5x\n", 0},
        {"User-agent: *\nCrawl-delay:\n", 0},
        {"User-agent: *\nCrawl-delay: 99999999999999999999\n", 0},
        {"Crawl-delay: 10\n", 0},
        {"User-agent: x\nCrawl-delay: 10\n", 0},
        {"User-agent: pawl\nCrawl-delay: 1\n\nUser-agent: *\nCrawl-delay: 10\n", 1000},
        {"User-agent: pawl\nDisallow:\n\nUser-agent: *\nCrawl-delay: 10\n", 0},
        {"User-agent: pawl\nCrawl-delay: 1\n\nUser-agent: pawl\nCrawl-delay: 3\n", 3000},
        {"User-agent: *\nDisallow: /a\nCrawl-delay: 7\nAllow: /b\n", 7000},
    };
    for (size_t i = 0; i < ARRAY_LEN(delays); i++) {
        struct robots *r = robots_parse(sv_of(delays[i].text), SV("pawl"));
        assert_true_msg(robots_crawl_delay(r).us == delays[i].ms * 1000, "%s", delays[i].text);
        robots_free(r);
    }
}

/* 500 KiB are read; a line that goes across their end is none. */
static void long_files_are_cut(void **state)
{
    (void)state;
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    str_adds(&s, "User-agent: *\nDisallow: /first\n");
    while (s.len < ROBOTS_MAX_BYTES - 10)
        str_addc(&s, s.len % 80 ? '#' : '\n');
    str_adds(&s, "\nDisallow: /cut\nDisallow: /last\n");
    assert_false(allows(str_cstr(&s), "/first"));
    assert_true(allows(str_cstr(&s), "/cut"));
    assert_true(allows(str_cstr(&s), "/"));
    assert_true(allows(str_cstr(&s), "/last"));
}

/* Patterns made to be slow. */
static void matching_is_linear(void **state)
{
    (void)state;
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT), path = STR_INIT(STR_LINE);
    str_adds(&text, "User-agent: *\n");
    while (text.len < ROBOTS_MAX_BYTES - 100)
        str_adds(&text, "Disallow: /*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n");
    str_addc(&path, '/');
    for (int i = 0; i < 4000; i++)
        str_addc(&path, 'a');
    struct robots *r = robots_parse(str_sv(&text), SV("pawl"));
    struct boot before = clock_boot();
    assert_true(robots_allows(r, str_sv(&path)));
    assert_true(clock_boot().us - before.us < 5000000);
    robots_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_as_the_rfc_says),
        cmocka_unit_test(crawl_delay_is_of_the_group),
        cmocka_unit_test(long_files_are_cut),
        cmocka_unit_test(matching_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
