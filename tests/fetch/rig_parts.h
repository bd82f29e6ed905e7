/* What the parts of the rig share: its runs and their services. */
#ifndef PAWL_TESTS_FETCH_RIG_PARTS_H
#define PAWL_TESTS_FETCH_RIG_PARTS_H

#include "rig.h"

struct fake_run {
    struct run run;
    struct lease lease;
    struct ended *out;
    int owed; /* answers on their way */
    bool over, cancelled;
};

extern const struct run_services fake_services;

/* Something happened that a cancel may come after. */
void rig_event(void);

#endif
