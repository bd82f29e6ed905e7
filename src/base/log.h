/* Log lines: one line an event, as text or JSON, every field escaped (I14, S51).
 * Only worker, server and cli log; lower layers return errors. Thread-safe: one write per line. */
#ifndef PAWL_BASE_LOG_H
#define PAWL_BASE_LOG_H

#include "str.h"
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct logger {
    int fd;
    enum log_level level; /* lines above it are dropped */
    bool json;
    bool color;
    bool journal; /* fd is the journal's: a priority in front, no time, which it adds itself */
    /* Called before and after a line so that a progress bar on the same terminal can step aside. */
    void (*around)(void *arg, bool before);
    void *around_arg;
    /* Takes the line instead of fd, without time, level and line feed; NULL: none. */
    void (*sink)(void *arg, enum log_level level, struct sv line);
    void *sink_arg;
};

struct log_field {
    const char *name;
    enum { LOG_STR, LOG_INT } type;
    struct sv s; /* s.p NULL: the field is left out */
    int64_t i;
};
#define LOG_S(name_, sv_)  ((struct log_field){.name = (name_), .type = LOG_STR, .s = (sv_)})
#define LOG_I(name_, int_) ((struct log_field){.name = (name_), .type = LOG_INT, .i = (int_)})

/* text: 2026-01-02T03:04:05.678Z info  EVENT name=value name="with space"
 * journal: <6>EVENT name=value …
 * JSON: {"at":…,"level":…,"event":EVENT,name:value,…} */
void log_event(const struct logger *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t n);
#define LOG(log, level, event, ...)                                                                \
    log_event((log), (level), (event), (struct log_field[]){__VA_ARGS__},                          \
              sizeof((struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

#endif
