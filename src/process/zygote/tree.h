/* Signals for whole process trees. Descendants are found by parent in /proc: whatever a job does
 * (setsid, double fork, closing everything), it stays below its subreaper. */
#ifndef PAWL_ZYGOTE_TREE_H
#define PAWL_ZYGOTE_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Send `sig` to every living descendant of the calling process, except the children for which
 * `spare` answers true, and what is below those. spare may be NULL. SIGTERM is followed by SIGCONT,
 * so that stopped processes see it. Returns how many were signalled; a process forked meanwhile can
 * be missed: to kill, repeat until wait(2) finds no child. */
int tree_signal(int sig, bool (*spare)(pid_t child));

#endif
