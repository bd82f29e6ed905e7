/* One thing in full, for people: a line for each field. */
#ifndef PAWL_CLI_FIELDS_H
#define PAWL_CLI_FIELDS_H

#include "clock.h"
#include "str.h"

/* The name, padded, and the value made harmless; nothing where the value is none. */
void field_text(struct str *s, const char *name, struct sv value);
void field_time(struct str *s, const char *name, struct wall t); /* nothing where us is 0 */
void field_dur(struct str *s, const char *name, struct dur d);

#endif
