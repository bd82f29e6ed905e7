/* Reading a section that is not single values: one member at a time, whose value is also kept as
 * text for config_each(), with secrets masked at once. Internal to this folder. */
#ifndef PAWL_CONFIG_READING_H
#define PAWL_CONFIG_READING_H

#include "load.h"

enum { LIST_MAX = 1000, SIGNING_KEY_MAX = 4096 };

struct reading {
    struct load *l;
    char key[320];   /* "kinds.parse.command", for messages */
    struct str show; /* the value read, as it may be shown */
};

/* All return 0, or CONFIG with file, line and key. */
PAWL_MUST_USE int reading_want(struct reading *r, const struct yaml_node *n, enum yaml_type type,
                               const char *what);
PAWL_MUST_USE int reading_scalar(struct reading *r, const struct yaml_node *n, const char *what,
                                 struct file_text *out);
struct sv reading_masked(const struct file_text *v);

/* These add to `show` what they read. */
PAWL_MUST_USE int reading_text(struct reading *r, const struct yaml_node *n, const char *what,
                               char **out);
PAWL_MUST_USE int reading_texts(struct reading *r, const struct yaml_node *n,
                                struct string_list *out);
PAWL_MUST_USE int reading_dur(struct reading *r, const struct yaml_node *n, const char *min,
                              const char *max, bool none, struct dur *out);
PAWL_MUST_USE int reading_bool(struct reading *r, const struct yaml_node *n, bool *out);
PAWL_MUST_USE int reading_number(struct reading *r, const struct yaml_node *n, int64_t min,
                                 int64_t max, int64_t *out);
/* Where something is posted to. What follows the host is not shown: beside the secrets of others a
 * web hook's URL often is one. */
PAWL_MUST_USE int reading_url(struct reading *r, const struct yaml_node *n, char **out);
/* The key of a signature; never shown. */
PAWL_MUST_USE int reading_secret(struct reading *r, const struct yaml_node *n, char **out);

/* This one does not: for members of lists. */
PAWL_MUST_USE int reading_int(struct reading *r, const struct yaml_node *n, int64_t min,
                              int64_t max, int64_t *out);

/* An entry of a list of named mappings, of which there are `have` so far, at most `max`. */
PAWL_MUST_USE int reading_entry(struct load *l, const struct yaml_node *n, const char *section,
                                size_t have, size_t max);
/* Its members by `read`; the name first, because messages about the others call the entry by it. */
PAWL_MUST_USE int reading_members(struct reading *r, const struct yaml_node *n, const char *section,
                                  int (*read)(struct reading *r, const struct yaml_node *m));

/* An unknown member; r->key names it in full. */
int reading_unknown(struct reading *r, const struct yaml_node *n, const char *const *names,
                    size_t n_names);
/* Keep what was read for config_each(). */
void reading_remember(struct reading *r, const struct yaml_node *n, const char *doc);

#endif
