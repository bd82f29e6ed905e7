/* libyaml's events as a tree. Recursion is bounded by YAML_MAX_DEPTH. */
#include "yaml_tree.h"

#include "options.h"
#include <yaml.h>

struct reading {
    yaml_parser_t parser;
    const char *file;
    struct sv text;
    struct arena *arena;
    int n_nodes;
    struct pawl_err *err;
};

static int bad(struct reading *r, int line, const char *what)
{
    return err_set(r->err, PAWL_ECONFIG, "%s:%d: %s", r->file, line, what);
}

static int line_of(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

/* A reader error (bad UTF-8) has an offset but no mark. */
static int problem_line(const struct reading *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error != YAML_READER_ERROR)
        return line_of(p->problem_mark);
    int line = 1;
    for (size_t i = 0; i < p->problem_offset && i < r->text.n; i++)
        line += r->text.p[i] == '\n';
    return line;
}

static int syntax_error(struct reading *r)
{
    const yaml_parser_t *p = &r->parser;
    int rc = err_set(r->err, PAWL_ECONFIG, "%s:%d: not valid YAML: %s%s%s", r->file,
                     problem_line(r), p->problem ? p->problem : "unknown problem",
                     p->context ? " " : "", p->context ? p->context : "");
    if (p->context && strstr(p->context, "alias"))
        err_hint(r->err, "write \"*\" in quotes");
    return rc;
}

static int next_event(struct reading *r, yaml_event_t *ev)
{
    return yaml_parser_parse(&r->parser, ev) ? 0 : syntax_error(r);
}

static struct yaml_node *new_node(struct reading *r, enum yaml_type type, const yaml_event_t *ev)
{
    struct yaml_node *n = arena_zalloc(r->arena, 1, sizeof(*n));
    n->type = type;
    n->line = line_of(ev->start_mark);
    return n;
}

/* Anchors, aliases and tags can make a file mean something else than it shows. */
static int refuse_extras(struct reading *r, const yaml_event_t *ev)
{
    const void *anchor = NULL, *tag = NULL;
    switch (ev->type) {
    case YAML_ALIAS_EVENT:
        return bad(r, line_of(ev->start_mark), "aliases are not supported");
    case YAML_SCALAR_EVENT:
        anchor = ev->data.scalar.anchor;
        tag = ev->data.scalar.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = ev->data.mapping_start.anchor;
        tag = ev->data.mapping_start.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = ev->data.sequence_start.anchor;
        tag = ev->data.sequence_start.tag;
        break;
    default:
        break;
    }
    if (anchor)
        return bad(r, line_of(ev->start_mark), "anchors are not supported");
    return tag ? bad(r, line_of(ev->start_mark), "tags are not supported") : 0;
}

static int read_node(struct reading *r, const yaml_event_t *ev, int depth, struct yaml_node **out);

static int read_text(struct reading *r, const yaml_event_t *ev, struct yaml_node **out)
{
    const char *p = (const char *)ev->data.scalar.value;
    size_t n = ev->data.scalar.length;
    if (memchr(p, '\0', n))
        return bad(r, line_of(ev->start_mark), "NUL is not allowed");
    struct yaml_node *node = new_node(r, YAML_TEXT, ev);
    node->text = sv_make(arena_strndup(r->arena, p, n), n);
    node->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *out = node;
    return 0;
}

static int read_list(struct reading *r, const yaml_event_t *start, int depth,
                     struct yaml_node **out)
{
    struct yaml_node *list = new_node(r, YAML_LIST, start), **end = &list->first;
    for (;;) {
        AUTO(yaml_event_delete) yaml_event_t ev = {0};
        if (next_event(r, &ev) < 0)
            return PAWL_ECONFIG;
        if (ev.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (read_node(r, &ev, depth + 1, end) < 0)
            return PAWL_ECONFIG;
        end = &(*end)->next;
    }
    *out = list;
    return 0;
}

static int check_name(struct reading *r, const struct yaml_node *map, const struct yaml_node *name)
{
    char shown[SHORT_TEXT];
    if (name->type != YAML_TEXT)
        return bad(r, name->line, "a key must be plain text");
    for (const struct yaml_node *m = map->first; m; m = m->next)
        if (sv_eq(m->name, name->text))
            return err_set(r->err, PAWL_ECONFIG, "%s:%d: key \"%s\" twice; first on line %d",
                           r->file, name->line, short_text(name->text, shown), m->name_line);
    return 0;
}

static int read_map(struct reading *r, const yaml_event_t *start, int depth, struct yaml_node **out)
{
    struct yaml_node *map = new_node(r, YAML_MAP, start), **end = &map->first;
    for (;;) {
        AUTO(yaml_event_delete) yaml_event_t key = {0};
        AUTO(yaml_event_delete) yaml_event_t value = {0};
        struct yaml_node *name = NULL, *member = NULL;
        if (next_event(r, &key) < 0)
            return PAWL_ECONFIG;
        if (key.type == YAML_MAPPING_END_EVENT)
            break;
        if (read_node(r, &key, depth + 1, &name) < 0 || check_name(r, map, name) < 0 ||
            next_event(r, &value) < 0 || read_node(r, &value, depth + 1, &member) < 0)
            return PAWL_ECONFIG;
        member->name = name->text;
        member->name_line = name->line;
        *end = member;
        end = &member->next;
    }
    *out = map;
    return 0;
}

static int read_node(struct reading *r, const yaml_event_t *ev, int depth, struct yaml_node **out)
{
    if (refuse_extras(r, ev) < 0)
        return PAWL_ECONFIG;
    if (depth > YAML_MAX_DEPTH)
        return bad(r, line_of(ev->start_mark), "nested too deep");
    if (++r->n_nodes > YAML_MAX_NODES)
        return bad(r, line_of(ev->start_mark), "too many values");
    if (ev->type == YAML_MAPPING_START_EVENT)
        return read_map(r, ev, depth, out);
    if (ev->type == YAML_SEQUENCE_START_EVENT)
        return read_list(r, ev, depth, out);
    return read_text(r, ev, out);
}

/* Stream start, at most one document, stream end. */
static int read_stream(struct reading *r, struct yaml_node **out)
{
    struct yaml_node *root = NULL;
    bool seen = false;
    for (;;) {
        AUTO(yaml_event_delete) yaml_event_t ev = {0};
        if (next_event(r, &ev) < 0)
            return PAWL_ECONFIG;
        if (ev.type == YAML_STREAM_END_EVENT)
            break;
        if (ev.type == YAML_STREAM_START_EVENT || ev.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (ev.type == YAML_DOCUMENT_START_EVENT) {
            if (seen)
                return bad(r, line_of(ev.start_mark), "more than one document");
            seen = true;
            continue;
        }
        if (read_node(r, &ev, 0, &root) < 0)
            return PAWL_ECONFIG;
    }
    *out = root;
    return 0;
}

int yaml_tree_read(const char *file, struct sv text, struct arena *a, struct yaml_node **out,
                   struct pawl_err *err)
{
    struct reading r = {.file = file, .text = text, .arena = a, .err = err};
    if (!yaml_parser_initialize(&r.parser))
        abort();
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    int rc = read_stream(&r, out);
    yaml_parser_delete(&r.parser);
    return rc;
}

bool yaml_is_null(const struct yaml_node *n)
{
    return n->type == YAML_TEXT && n->plain &&
           (n->text.n == 0 || sv_eq(n->text, SV("~")) || sv_eq(n->text, SV("null")));
}

const char *yaml_type_name(const struct yaml_node *n)
{
    static const char *const names[] = {"text", "a mapping", "a list"};
    return names[n->type];
}
