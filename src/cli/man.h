/* What the pages of the manual share. Internal to man*.c. */
#ifndef PAWL_CLI_MAN_H
#define PAWL_CLI_MAN_H

#include "str.h"

/* Text as roff takes it: no requests by accident, hyphens that can be copied. */
void man_put(struct str *s, struct sv text);
/* The head of a page: .TH and NAME. */
void man_title(struct str *s, const char *page, int section, const char *summary);
/* pawl.yaml.5 */
void man_config_page(struct str *s);

#endif
