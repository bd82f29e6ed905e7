/* Secrets: ${file:NAME} in a text of the file is the content of secrets_dir/NAME. */
#include "load.h"

#include "fd.h"

enum { SECRET_MAX = 64 << 10, NAME_LONGEST = 255 };

static bool name_valid(struct sv name)
{
    if (!name.n || name.n > NAME_LONGEST || name.p[0] == '.')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

static int add_secret(struct load *l, const struct yaml_node *n, const char *key, struct sv name,
                      struct str *out)
{
    char shown[SHORT_TEXT];
    if (!name_valid(name))
        return load_fail(l, n, key, "${file:%s}: a secret's name has only A-Z a-z 0-9 . _ -",
                         short_text(name, shown));
    AUTO_STR struct str path = STR_INIT(STR_LINE);
    AUTO_STR struct str content = STR_INIT(SECRET_MAX);
    str_add(&path, l->secrets_dir);
    str_addc(&path, '/');
    str_add(&path, name);
    if (file_read(str_cstr(&path), &content, l->err) < 0) {
        if (l->err)
            l->err->code = PAWL_ECONFIG;
        err_wrap(l->err, "%s:%d: %s: ${file:" SV_FMT "}", l->file, n->line, key, SV_ARG(name));
        return PAWL_ECONFIG;
    }
    struct sv text = str_sv(&content);
    if (text.n && text.p[text.n - 1] == '\n')
        text.n--;
    if (text.n && memchr(text.p, '\0', text.n))
        return load_fail(l, n, key, "${file:" SV_FMT "}: NUL is not allowed", SV_ARG(name));
    str_add(out, text);
    return 0;
}

int load_text(struct load *l, const struct yaml_node *n, const char *key, struct file_text *out)
{
    static const char open[] = "${file:";
    const char *rest = n->text.p, *at = strstr(rest, open);
    if (!at) {
        *out = (struct file_text){n->text, false};
        return 0;
    }
    if (key == options[OPTION_secrets_dir].key)
        return load_fail(l, n, key, "${file:NAME} cannot name its own folder");
    AUTO_STR struct str text = STR_INIT(1 << 20);
    for (; at; at = strstr(rest, open)) {
        const char *name = at + sizeof(open) - 1, *end = strchr(name, '}');
        if (!end)
            return load_fail(l, n, key, "${file: without }");
        str_add(&text, sv_make(rest, (size_t)(at - rest)));
        if (add_secret(l, n, key, sv_make(name, (size_t)(end - name)), &text) < 0)
            return PAWL_ECONFIG;
        rest = end + 1;
    }
    str_adds(&text, rest);
    if (text.overflow)
        return load_fail(l, n, key, "longer than 1 MiB");
    *out = (struct file_text){sv_make(arena_strndup(&l->arena, text.p, text.len), text.len), true};
    return 0;
}
