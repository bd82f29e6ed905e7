-- Schema 4: other hosts that a running job asks.

-- Hosts beside its lane's under whose gates a running job has permits, from when on; which gates these are
-- follows from the limits, as for a lane. Goes with the lease.
CREATE TABLE admitted (
    job  INTEGER NOT NULL,
    host TEXT NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (job, host)
) WITHOUT ROWID;
