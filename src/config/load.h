/* Building a configuration: what the parts of this folder share. Internal to it. */
#ifndef PAWL_CONFIG_LOAD_H
#define PAWL_CONFIG_LOAD_H

#include "mem.h"
#include "options.h"
#include "yaml_tree.h"

/* A value outside the table, kept as config_each() shows it. */
struct shown_value {
    char *key, *value, *origin;
    const char *doc;
};

/* Where each value came from. */
struct config_origins {
    char *option[N_OPTIONS];                 /* NULL: default */
    bool secret[N_OPTIONS];                  /* holds something out of secrets_dir */
    char *pools, *pass_env, *compress_types; /* NULL: default */
    struct shown_value *shown;               /* kinds, limits, retention.queues, alerts */
    size_t n_shown, cap_shown;
};

struct load {
    struct config *c;
    struct arena arena; /* the file's tree and scratch text */
    const char *file;
    bool world_readable;     /* the file */
    const char *flag_origin; /* instead of the flag's own name; NULL: that */
    struct sv secrets_dir;
    struct pawl_err *err;
};

/* A text value of the file, secrets filled in. */
struct file_text {
    struct sv text;
    bool secret;
};

/* "FILE:LINE: KEY: message". */
int load_fail(struct load *l, const struct yaml_node *n, const char *key, const char *fmt, ...)
    PAWL_PRINTF(4, 5);
/* Put "FILE:LINE: KEY: " before a message that is set; for a secret the message is replaced by one
 * that does not quote it. */
int load_wrap(struct load *l, const struct yaml_node *n, const char *key, bool secret);
/* The scalar's text with every ${file:NAME} replaced. */
PAWL_MUST_USE int load_text(struct load *l, const struct yaml_node *n, const char *key,
                            struct file_text *out);
char *load_origin(struct load *l, const struct yaml_node *n); /* "pawl.yaml:12", to be freed */

/* The sections that are not single values, out of the file; each replaces what was there. */
PAWL_MUST_USE int load_pools(struct load *l, const struct yaml_node *n);
PAWL_MUST_USE int load_pass_env(struct load *l, const struct yaml_node *n);
PAWL_MUST_USE int load_compress_types(struct load *l, const struct yaml_node *n);
PAWL_MUST_USE int load_kinds(struct load *l, const struct yaml_node *n);
PAWL_MUST_USE int load_limits(struct load *l, const struct yaml_node *n);
PAWL_MUST_USE int load_retention(struct load *l, const struct yaml_node *n);
PAWL_MUST_USE int load_alerts(struct load *l, const struct yaml_node *n);
/* When all places were read: what an entry does not say is what the single values do. */
PAWL_MUST_USE int limits_resolve(struct load *l);
void retention_resolve(struct config *c);
void limits_clear(struct config *c);
void retention_clear(struct config *c);
void alerts_clear(struct config *c);
/* The same from one text: "parse=4,*=2", "HOME,LANG", "text/html,text/plain". Appends. */
PAWL_MUST_USE int pools_add(struct config *c, struct sv text, struct pawl_err *err);
PAWL_MUST_USE int pass_env_add(struct config *c, struct sv text, struct pawl_err *err);
PAWL_MUST_USE int compress_types_add(struct config *c, struct sv text, struct pawl_err *err);
void pools_clear(struct config *c);
void pools_format(const struct config *c, struct str *out);
void names_format(const struct string_list *list, struct str *out); /* "a,b" */

/* Names a job gets from pawl: never read as configuration, never set by it. */
bool env_reserved(struct sv name);
bool env_name_valid(struct sv name); /* [A-Za-z_][A-Za-z0-9_]* */
/* A variable whose name says that its value is secret: …PASSWORD, …TOKEN, …SECRET, …_KEY kinds. */
bool env_name_secret(struct sv name);

void string_list_add(struct string_list *list, struct sv s);
void string_list_clear(struct string_list *list);

#endif
