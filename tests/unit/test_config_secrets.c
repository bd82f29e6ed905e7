/* config: secrets from files, and that no value of one is shown. */
#include "config_lab.h"

static void reads_secrets(void **state)
{
    (void)state;
    write_file("secrets/token", "s3cret\n", 0600);
    write_file("secrets/lease", "45s", 0600);
    write_file("secrets/two", "a\nb\n\n", 0600);
    static const char yaml[] =
        "secrets_dir: secrets\n"
        "store: sqlite:${file:token}-${file:token}.db\n"
        "worker: {lease: \"${file:lease}\"}\n"
        "kinds:\n"
        "  a:\n"
        "    command: [run, \"--token=${file:token}\", x]\n"
        "    env: {TOKEN: \"${file:token}\", TWO: \"${file:two}\", P: \"${x}\",\n"
        "      DB_PASSWORD: inline}\n";
    AUTO_CONFIG struct config *c = load_good(yaml);
    assert_string_equal(c->store, "sqlite:s3cret-s3cret.db");
    assert_int_equal(c->worker_lease.us, 45000000);
    const struct kind_conf *k = config_kind(c, SV("a"));
    assert_string_equal(k->command.v[1], "--token=s3cret");
    assert_string_equal(k->env.v[0], "TOKEN=s3cret");
    assert_string_equal(k->env.v[1], "TWO=a\nb\n");
    assert_string_equal(k->env.v[2], "P=${x}");
    assert_string_equal(k->env.v[3], "DB_PASSWORD=inline");
    assert_shown(c, "store", "***", "pawl.yaml:2");
    assert_shown(c, "worker.lease", "***", "pawl.yaml:3");
    assert_shown(c, "kinds.a.command", "[\"run\",\"***\",\"x\"]", "pawl.yaml:6");
    assert_shown(c, "kinds.a.env",
                 "{\"TOKEN\":\"***\",\"TWO\":\"***\",\"P\":\"${x}\",\"DB_PASSWORD\":\"***\"}",
                 "pawl.yaml:7");
    static const char *const flags[] = {"store=sqlite:flag.db"};
    config_free(TAKE_PTR(c));
    assert_code(load(yaml, NULL, flags, 1, &c, NULL), 0);
    assert_shown(c, "store", "sqlite:flag.db", "--store");
}

static void refuses_bad_secrets(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"\nstore: ${file:absent}", AT("2", "store: ${file:absent}: cannot open secrets/absent: No "
                                            "such file or directory")},
        {"store: ${file:../token}",
         AT("1", "store: ${file:../token}: a secret's name has only A-Z a-z 0-9 . _ -")},
        {"store: ${file:.hidden}",
         AT("1", "store: ${file:.hidden}: a secret's name has only A-Z a-z 0-9 . _ -")},
        {"store: ${file:}", AT("1", "store: ${file:}: a secret's name has only A-Z a-z 0-9 . _ -")},
        {"store: ${file:token", AT("1", "store: ${file: without }")},
        {"worker: {lease: \"${file:token}\"}",
         AT("1", "worker.lease: the secret's content is not allowed here")},
        {"kinds: {a: {command: [x], timeout: \"${file:token}\"}}",
         AT("1", "kinds.a.timeout: the secret's content is not allowed here")},
        {"secrets_dir: ${file:token}",
         AT("1", "secrets_dir: ${file:NAME} cannot name its own folder")},
    };
    static const char *const env[] = {"PAWL_SECRETS_DIR=secrets", NULL};
    write_file("secrets/token", "s3cret\n", 0600);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct config *c = NULL;
        struct pawl_err err = {0};
        assert_code(load(rows[i].yaml, env, NULL, 0, &c, &err), PAWL_ECONFIG);
        assert_string_equal(err.msg, rows[i].msg);
        assert_null(strstr(err.msg, "s3cret"));
    }
}

/* S46: a secret written into a file that everybody can read. */
static void refuses_readable_secrets(void **state)
{
    (void)state;
    static const char yaml[] = "kinds:\n  a:\n    command: [x]\n    env: {API_TOKEN: abc}\n";
    struct config *c = NULL;
    struct pawl_err err = {0};
    write_file("other.yaml", yaml, 0644);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
    assert_string_equal(err.msg, "other.yaml:4: kinds.a.env: API_TOKEN: a secret in a file that "
                                 "everybody can read");
    assert_string_equal(err.hint, "chmod o-r other.yaml, or write ${file:NAME}");
    write_file("other.yaml", yaml, 0640);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), 0);
    config_free(c);
    write_file("other.yaml", "kinds: {a: {handler: http, url: \"http://a\", secret: abc}}\n", 0644);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
    assert_string_equal(err.msg, "other.yaml:1: kinds.a.secret: a secret in a file that everybody "
                                 "can read");
    write_file("other.yaml", "kinds: {a: {command: [x], env: {MODE: abc, TOKENS: x}}}\n", 0644);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), 0);
    config_free(c);
}

static void masks_passwords_in_urls(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    static const char *const flags[] = {"store=postgresql://me:pa:s@s@host:5432/db"};
    assert_code(load(NULL, NULL, flags, 1, &c, NULL), 0);
    assert_shown(c, "store", "postgresql://me:***@host:5432/db", "--store");
    config_free(TAKE_PTR(c));
    static const char *const plain[] = {"store=postgresql://host:5432/db"};
    assert_code(load(NULL, NULL, plain, 1, &c, NULL), 0);
    assert_shown(c, "store", "postgresql://host:5432/db", "--store");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_secrets),
        cmocka_unit_test(refuses_bad_secrets),
        cmocka_unit_test(refuses_readable_secrets),
        cmocka_unit_test(masks_passwords_in_urls),
    };
    return cmocka_run_group_tests_name("config-secrets", tests, enter_folder, leave_folder);
}
