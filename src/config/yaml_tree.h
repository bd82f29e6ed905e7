/* A configuration file as a tree with line numbers: the only user of libyaml. Internal to this
 * folder. Only mappings, sequences and scalars: anchors, aliases, tags, several documents and
 * duplicate keys are refused, so what a reader sees in the file is what pawl takes from it. */
#ifndef PAWL_CONFIG_YAML_TREE_H
#define PAWL_CONFIG_YAML_TREE_H

#include "err.h"
#include "mem.h"
#include "str.h"

enum yaml_type { YAML_TEXT, YAML_MAP, YAML_LIST };
enum { YAML_MAX_DEPTH = 16, YAML_MAX_NODES = 20000 };

struct yaml_node {
    enum yaml_type type;
    int line;
    struct sv text; /* YAML_TEXT */
    bool plain;     /* YAML_TEXT: not quoted, not a block */
    struct sv name; /* the key, when this is a member of a mapping */
    int name_line;
    struct yaml_node *first, *next; /* children; sibling */
};

/* Parse the text of `file` (named in messages). *out is NULL for an empty document. Everything
 * lives in the arena. CONFIG with "FILE:LINE: " on failure. */
PAWL_MUST_USE int yaml_tree_read(const char *file, struct sv text, struct arena *a,
                                 struct yaml_node **out, struct pawl_err *err);
/* Nothing was written: an empty plain scalar, ~ or null. */
bool yaml_is_null(const struct yaml_node *n);
const char *yaml_type_name(const struct yaml_node *n); /* "a mapping" */

#endif
