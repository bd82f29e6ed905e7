/* Text from outside: validation and escaping. I14: nothing from a job reaches a terminal or a log
 * line except through text_safe() or the JSON writer. */
#ifndef PAWL_BASE_TEXT_H
#define PAWL_BASE_TEXT_H

#include "str.h"

/* Offset of the first byte that is not valid UTF-8 (or is NUL); s.n when all is well. */
size_t text_bad_utf8(struct sv s);
/* How many bytes at the end are a character that is cut short. */
size_t text_cut_short(struct sv s);
/* Is it ASCII letters, digits and these others, and at least one of them? */
bool text_is_word(struct sv s, const char *others);
/* Append s made harmless for one line of a terminal: control, bidi and invalid bytes become
 * \n \t \xHH \u{HHHH}. At most `max` input bytes are shown, then "…"; 0 = no maximum. */
void text_safe(struct str *out, struct sv s, size_t max);
/* The same for a whole log: line feeds and tabs pass. */
void text_safe_lines(struct str *out, struct sv s);
/* JSON text made harmless for a terminal and still the same JSON: what text_safe() would show as an
 * escape becomes \uHHHH. */
void text_safe_json(struct str *out, struct sv json);
/* Append s as one word of a shell line, quoted where it needs to be, and harmless on a terminal:
 * what text_safe() would escape becomes $'\xHH', which bash, zsh, ksh and busybox read back. */
void text_shell(struct str *out, struct sv s);
/* Append s in single quotes, whatever is in it. */
void text_quoted(struct str *out, struct sv s);
/* Append a URL without its passwords: neither that of its user nor parameters of that name. Other
 * text passes as it is. */
void text_url(struct str *out, struct sv url);
/* Replace invalid UTF-8 by U+FFFD and NUL by U+2400: for bytes that must be stored as text. */
void text_to_utf8(struct str *out, struct sv s);

#endif
