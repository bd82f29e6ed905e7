/* Numbers for people. */
#ifndef PAWL_CLI_WORDS_H
#define PAWL_CLI_WORDS_H

#include "str.h"

void words_count(struct str *s, int64_t n); /* "10 000" */
void words_bytes(struct str *s, int64_t n); /* "1.5 MiB" */

#endif
