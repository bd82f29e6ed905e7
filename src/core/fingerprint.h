/* Errors grouped: the same failure with another number, path or id has the same fingerprint. */
#ifndef PAWL_CORE_FINGERPRINT_H
#define PAWL_CORE_FINGERPRINT_H

#include "job.h"

/* Of a class and its message, normalised: digits, hex words, quoted text, URLs and paths count as
 * one sign each, letters without case; codes ("exit 3", "HTTP 503") stay. Never 0. */
uint32_t fingerprint(enum fail_class cls, struct sv message);
/* "e3f1c2": e and the first six hex digits. */
enum { FINGERPRINT_TEXT = 8 };
void fingerprint_format(uint32_t fp, char out[FINGERPRINT_TEXT]);
/* A fingerprint or the beginning of one ("e3f1"): the range of values it stands for. -1 if it is
 * none: 'e' and three to six hex digits. */
PAWL_MUST_USE int fingerprint_parse(struct sv text, uint32_t *out_low, uint32_t *out_high);

#endif
