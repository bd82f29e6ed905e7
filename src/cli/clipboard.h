/* Text into the clipboard. */
#ifndef PAWL_CLI_CLIPBOARD_H
#define PAWL_CLI_CLIPBOARD_H

#include "err.h"
#include "str.h"

/* On a terminal by the escape sequence OSC 52, which works across ssh; where there is none, or the
 * text is longer than terminals take, by wl-copy, xclip or pbcopy. *out_how names the way taken.
 * FAILED with a hint if there is none. */
PAWL_MUST_USE int clipboard_put(struct sv text, const char **out_how, struct pawl_err *err);

#endif
