/* A disk that watches and fails on request. It keeps a model of what a power cut would leave: which
 * files have bytes, and which folders names, that no sync was for. Syncs only change the model, so
 * that thousands of them cost nothing. For one thread. */
#ifndef PAWL_TESTS_LAKE_PROBE_H
#define PAWL_TESTS_LAKE_PROBE_H

#include "disk.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum probe_op {
    OP_OPEN,
    OP_OPEN_FOREIGN,
    OP_MAKE_FOLDER,
    OP_LOCK,
    OP_READ,
    OP_WRITE,
    OP_TRUNCATE,
    OP_SYNC_DATA,
    OP_SYNC_FOLDER,
    OP_SYNC_ALL,
    OP_STAT,
    OP_WRITABLE,
    OP_TOUCH,
    OP_RENAME,
    OP_UNLINK,
    N_OPS
};

struct probe {
    int fail_at;     /* the n-th call, from 1; 0: none */
    bool stays;      /* and all after it */
    bool torn;       /* a write that fails has written half */
    int with;        /* errno */
    bool lie[N_OPS]; /* syncs that answer well and do nothing: the checker's own test */
    void (*before)(enum probe_op op); /* NULL: nobody is told */
    /* what happened */
    int calls, counts[N_OPS];
    bool fired, unlink_failed;
    const char *named_early; /* an object that got its name before its bytes were durable */
    int64_t forgotten;       /* bytes that were not to be left in memory, */
    bool forgotten_early;    /* before they were durable */
};
extern struct probe probe;
extern const struct disk probe_disk;

void probe_reset(void);
bool probe_file_dirty(ino_t ino);
bool probe_folder_dirty(ino_t ino);

#endif
