/* An SQLite VFS over the default one that counts writes, syncs, truncations and deletions, and lets
 * the n-th of them fail. The store uses it when PAWL_TEST_VFS names it. One thread. */
#ifndef PAWL_TESTS_FAULTVFS_H
#define PAWL_TESTS_FAULTVFS_H

#include <stdbool.h>

#define FAULT_VFS "pawl-fault"

enum fault_kind {
    FAULT_IOERR, /* nothing is done */
    FAULT_FULL,  /* as on a full disk */
    FAULT_TORN,  /* half of a write is done, then IOERR */
};

/* Make the VFS known to SQLite and to the store. */
void fault_register(void);
/* From now on count; the n-th call fails, and if `stays` all after it. n 0: only count. */
void fault_arm(enum fault_kind kind, int n, bool stays);
/* Stop failing and counting. Returns how many calls were counted. */
int fault_disarm(void);
bool fault_fired(void);

#endif
