/* --payload of add and set. */
#ifndef PAWL_CLI_PAYLOAD_H
#define PAWL_CLI_PAYLOAD_H

#include "err.h"
#include "str.h"

/* JSON from the line, from a file ("@FILE") or from stdin ("-"). INPUT unless it is JSON; `out`
 * bounds its length. */
PAWL_MUST_USE int payload_read(const char *arg, struct str *out, struct pawl_err *err);

#endif
