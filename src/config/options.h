/* The option table (config.def) at run time, and the notation of values: parse, check against
 * bounds, write back. Internal to this folder. Messages of the parsers say what is wrong with the
 * value; where it stood is put in front by the caller. */
#ifndef PAWL_CONFIG_OPTIONS_H
#define PAWL_CONFIG_OPTIONS_H

#include "config.h"

enum option_id {
#define STRING(field, ...)   OPTION_##field,
#define DURATION(field, ...) OPTION_##field,
#define INTEGER(field, ...)  OPTION_##field,
#define BOOLEAN(field, ...)  OPTION_##field,
#define CHOICE(field, ...)   OPTION_##field,
#define BYTES(field, ...)    OPTION_##field,
#include "config.def"
#undef STRING
#undef DURATION
#undef INTEGER
#undef BOOLEAN
#undef CHOICE
#undef BYTES
    N_OPTIONS
};

enum option_type {
    TYPE_STRING,
    TYPE_DURATION,
    TYPE_INTEGER,
    TYPE_BOOLEAN,
    TYPE_CHOICE,
    TYPE_BYTES
};

struct option {
    const char *key;
    enum option_type type;
    size_t offset;     /* of the field in struct config */
    const char *value; /* default, in the file's notation */
    const char *min, *max;
    bool none;           /* TYPE_DURATION: "none" is allowed */
    const char *choices; /* TYPE_CHOICE: "a|b" */
    const char *doc;
};
extern const struct option options[N_OPTIONS];

/* The option of that key, or NULL. */
const struct option *option_find(struct sv key);
const char *option_type_name(const struct option *o); /* "a duration" */
/* Parse text into the option's field. CONFIG and the field untouched otherwise. */
PAWL_MUST_USE int option_set(const struct option *o, struct config *c, struct sv text,
                             struct pawl_err *err);
/* Append the field's value in the file's notation. */
void option_format(const struct option *o, const struct config *c, struct str *out);

/* "worker.slots" -> "PAWL_WORKER_SLOTS". */
enum { ENV_NAME_MAX = 64 };
void env_name(const char *key, char out[ENV_NAME_MAX]);

/* Values on their own; bounds are text in the file's notation, as in the table. */
PAWL_MUST_USE int value_dur(struct sv text, const char *min, const char *max, bool none,
                            struct dur *out, struct pawl_err *err);
PAWL_MUST_USE int value_int(struct sv text, int64_t min, int64_t max, int64_t *out,
                            struct pawl_err *err);
PAWL_MUST_USE int value_bool(struct sv text, bool *out, struct pawl_err *err);

/* Text from outside made fit for a message: escaped and cut. I14 */
enum { SHORT_TEXT = 160 };
const char *short_text(struct sv s, char out[SHORT_TEXT]);

#endif
