/* Artifacts as files of a folder. */
#ifndef PAWL_CLI_EXPORT_H
#define PAWL_CLI_EXPORT_H

#include "lake.h"
#include "store.h"

/* The folder, made if it is not there; its fd is the caller's. */
PAWL_MUST_USE int export_folder(const char *path, int *out, struct pawl_err *err);
/* Write one into the folder `path`, open as `folder`; appends its path. The name comes from numbers
 * and checked words alone (I14). outcome: *out_read false: the lake has not all of its bytes or
 * cannot read them, and nothing was written. */
PAWL_MUST_USE int export_file(struct lake *l, int folder, const char *path,
                              const struct artifact_view *v, struct str *out, bool *out_read,
                              struct pawl_err *err);

#endif
