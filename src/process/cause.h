/* Why a job's processes ended and where starting them failed: words shared by the worker, the
 * zygote and its supervisors. */
#ifndef PAWL_PROCESS_CAUSE_H
#define PAWL_PROCESS_CAUSE_H

enum process_cause {
    PROCESS_EXITED,         /* by itself; exit code or signal say how */
    PROCESS_TIMEOUT,        /* total time limit */
    PROCESS_IDLE_TIMEOUT,   /* no output for too long */
    PROCESS_CANCELLED,      /* process_cancel() */
    PROCESS_LEASE_DEADLINE, /* the lease was about to end (I5) */
    PROCESS_START_FAILED,   /* never ran: see enum process_step and errno */
    PROCESS_LOST,           /* its supervisor or the zygote died; nothing else is known */
};

/* Which step of starting failed. */
enum process_step {
    STEP_NONE,
    STEP_FORK,  /* resources: processes, descriptors, memory */
    STEP_CWD,   /* changing to the working directory */
    STEP_EXEC,  /* finding or executing the program */
    STEP_SETUP, /* descriptors or privileges of the new process */
};

#endif
