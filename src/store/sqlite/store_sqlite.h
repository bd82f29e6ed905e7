/* The SQLite store: several processes on one file of one machine. */
#ifndef PAWL_STORE_SQLITE_H
#define PAWL_STORE_SQLITE_H

#include "store.h"

/* Settings of SQLite that hold for the whole process and make it faster (no global count of memory,
 * which costs a mutex per allocation). For a program that owns its process: call it first. */
void store_sqlite_process_init(void);

/* Open (and with STORE_CREATE set up) the store at path. The handle belongs to one thread at a
 * time. errors: NOTFOUND no store; SCHEMA older or newer; CORRUPT damaged or foreign; UNREACHABLE
 * not readable or writable, a network file system, a symbolic link; LOCKED. */
PAWL_MUST_USE int store_sqlite_open(const char *path, const struct store_options *o,
                                    struct store **out, struct pawl_err *err);

#endif
