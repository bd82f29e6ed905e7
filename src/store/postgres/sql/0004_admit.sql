-- Version 4: other hosts that a running job asks.

-- Hosts beside its lane's under whose gates a running job has permits, from when on. Goes with the lease.
CREATE TABLE pawl.admitted (
    job  bigint NOT NULL,
    host text COLLATE "C" NOT NULL,
    at   bigint NOT NULL,
    PRIMARY KEY (job, host)
);
-- True: it has such rows. Null in nearly all jobs, which then costs nothing.
ALTER TABLE pawl.job ADD COLUMN admitted boolean;

-- Has other parameters now.
DROP FUNCTION IF EXISTS pawl.tell_gates(bigint[], bigint[], bigint[], bigint[], bigint[], integer[], bigint[],
                                        text[]);
