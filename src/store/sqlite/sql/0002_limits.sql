-- Schema 2: limits, gates, permits, parked lanes, turns, locks, duties.

-- A limit as its text (limit.h). config: what the configuration last said; null: it does not name it.
-- text null: removed by hand until the configuration changes.
CREATE TABLE limits (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    text        TEXT,
    config      TEXT,
    by_operator INTEGER NOT NULL DEFAULT 0,
    changed_at  INTEGER NOT NULL
);

-- One limit applied to one value; '' where the limit has one gate. Columns as struct gate_state.
-- wake_at: null: no lane is parked on it; 0: all of them are to be looked at anew; the greatest number: what
-- opens it is not time; else when to look.
CREATE TABLE gate (
    id              INTEGER PRIMARY KEY,
    limit_id        INTEGER NOT NULL,
    value           TEXT NOT NULL,
    wake_at         INTEGER,
    tat             INTEGER NOT NULL DEFAULT 0,
    interval_us     INTEGER NOT NULL DEFAULT 0,
    cut_at          INTEGER NOT NULL DEFAULT 0,
    raised_at       INTEGER NOT NULL DEFAULT 0,
    held_until      INTEGER NOT NULL DEFAULT 0,
    held_at         INTEGER NOT NULL DEFAULT 0,
    held_n          INTEGER NOT NULL DEFAULT 0,
    held_asked      INTEGER NOT NULL DEFAULT 0,
    breaker         INTEGER NOT NULL DEFAULT 0,
    since           INTEGER NOT NULL DEFAULT 0,
    until           INTEGER NOT NULL DEFAULT 0,
    failures        INTEGER NOT NULL DEFAULT 0,
    opens           INTEGER NOT NULL DEFAULT 0,
    epoch           INTEGER NOT NULL DEFAULT 0,
    probe_job       INTEGER NOT NULL DEFAULT 0,
    probe_fence     INTEGER NOT NULL DEFAULT 0,
    window_at       INTEGER NOT NULL DEFAULT 0,
    window_calls    INTEGER NOT NULL DEFAULT 0,
    window_failures INTEGER NOT NULL DEFAULT 0,
    why             TEXT,
    UNIQUE (limit_id, value)
);
CREATE INDEX gate_wake ON gate (wake_at) WHERE wake_at IS NOT NULL;

-- Who may run under a gate: inserted by the claim, deleted by what ends the lease (I7).
CREATE TABLE permit (
    gate INTEGER NOT NULL,
    job  INTEGER NOT NULL,
    PRIMARY KEY (gate, job)
) WITHOUT ROWID;

-- parked: the shut gate it waits for. turn: when it was last served, in fair order; else 0. Which gates a
-- lane has follows from the limits and is not kept.
ALTER TABLE lane ADD COLUMN parked INTEGER;
ALTER TABLE lane ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
DROP INDEX lane_ready;
CREATE INDEX lane_ready ON lane (class, head_priority DESC, turn, head_id)
    WHERE head_id IS NOT NULL AND parked IS NULL;
CREATE INDEX lane_parked ON lane (parked, head_priority DESC, turn, head_id) WHERE parked IS NOT NULL;

-- lock: digest of body.lock. A job with a lock is `held` (state -1, shown as queued) unless it is the one
-- whose turn it is: of all jobs with one lock at most one is ready or running, and the index says so.
-- aged: how much of the priority came by waiting.
ALTER TABLE job ADD COLUMN lock INTEGER;
ALTER TABLE job ADD COLUMN aged INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX job_lock ON job (lock) WHERE lock IS NOT NULL AND state IN (1, 3);
CREATE INDEX job_held ON job (lock, priority DESC, id) WHERE state = -1;

-- Kinds whose preflight fails on this worker: JSON object kind -> why.
ALTER TABLE session ADD COLUMN preflight TEXT NOT NULL DEFAULT '{}';

-- What one session does for all.
CREATE TABLE duty (
    name    TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    done    INTEGER NOT NULL
) WITHOUT ROWID;

-- What alerts look at, without walking over the rest: types 5, 9, 17 and 22 to 30. As bits, because a list
-- in a partial index is built anew by every statement that adds an event (a third of the drain).
CREATE INDEX event_rare ON event (id) WHERE 2143420960 >> type & 1;

-- What is shown of a job: held is queued, and what it gained by waiting is no part of its priority.
DROP VIEW job_row;
CREATE VIEW job_row AS
SELECT j.id, j.priority - j.aged AS priority, iif(j.state = -1, 1, j.state) AS state, j.attempt,
       j.transient, j.lost, j.fence, s.name AS worker,
       j.claimed_at, CASE j.state WHEN 3 THEN s.lease_until END AS lease_until,
       CASE WHEN j.state = 2 AND j.available_at IS NULL
            THEN (SELECT d.at_wall FROM due d WHERE d.job = j.id) ELSE j.available_at END
           AS available_at,
       j.finished_at, j.reason,
       EXISTS (SELECT 1 FROM cancel_ask k WHERE k.job = j.id AND k.fence = j.fence AND j.state = 3)
           AS cancel,
       (SELECT p.progress FROM progress p WHERE p.job = j.id AND p.fence = j.fence AND j.state = 3)
           AS progress,
       b.lock, b.key, b.created_at, b.max_attempts, b.timeout_us,
       b.parent, q.name AS queue, c.kind, nullif(l.host, '') AS host, a.class, a.error,
       a.exit_code, b.payload, r.result, a.fingerprint
FROM job j CROSS JOIN body b ON b.id = j.id CROSS JOIN lane l ON l.id = j.lane
     CROSS JOIN class c ON c.id = l.class CROSS JOIN queue q ON q.id = c.queue
     LEFT JOIN session s ON s.id = j.owner
     LEFT JOIN attempt a ON a.job = j.id AND a.fence = j.fence LEFT JOIN result r ON r.job = j.id;

DROP VIEW v_jobs;
CREATE VIEW v_jobs AS
SELECT j.id, q.name AS queue, c.kind, nullif(l.host, '') AS host, b.key, j.priority - j.aged AS priority,
       CASE j.state WHEN 0 THEN 'blocked' WHEN -1 THEN 'queued' WHEN 1 THEN 'queued' WHEN 2 THEN 'waiting'
            WHEN 3 THEN 'running' WHEN 4 THEN 'done' WHEN 5 THEN 'skipped' WHEN 6 THEN 'failed'
            ELSE 'cancelled' END AS state,
       j.attempt, j.transient AS transient_attempts, j.lost, j.fence, s.name AS worker,
       b.created_at, j.claimed_at, j.available_at,
       j.finished_at, b.payload, r.result, b.lock
FROM job j JOIN body b ON b.id = j.id JOIN lane l ON l.id = j.lane JOIN class c ON c.id = l.class
     JOIN queue q ON q.id = c.queue LEFT JOIN session s ON s.id = j.owner
     LEFT JOIN result r ON r.job = j.id;

CREATE VIEW v_limits AS
SELECT name, text, CASE by_operator WHEN 1 THEN 'operator' ELSE 'config' END AS source, config,
       changed_at
FROM limits WHERE text IS NOT NULL;

CREATE VIEW v_gates AS
SELECT l.name AS limit_name, nullif(g.value, '') AS value,
       (SELECT count(*) FROM permit p WHERE p.gate = g.id) AS used,
       (SELECT count(*) FROM lane n WHERE n.parked = g.id) AS parked,
       CASE g.breaker WHEN 0 THEN 'closed' WHEN 1 THEN 'open' ELSE 'half-open' END AS breaker,
       nullif(g.since, 0) AS breaker_since,
       CASE WHEN g.until NOT IN (0, 9223372036854775807) THEN g.until END AS breaker_until,
       g.failures, g.opens, nullif(g.held_until, 0) AS held_until, nullif(g.tat, 0) AS next_at,
       nullif(g.interval_us, 0) AS interval_us, g.why
FROM gate g JOIN limits l ON l.id = g.limit_id;

-- A lock that is held or wanted has just one job that is ready or running.
CREATE VIEW v_locks AS
SELECT b.lock AS key, iif(j.state = 3, j.id, NULL) AS job, iif(j.state = 3, j.fence, NULL) AS fence,
       s.name AS worker, iif(j.state = 3, j.claimed_at, NULL) AS since, s.lease_until AS until,
       (SELECT count(*) FROM job w WHERE w.state = -1 AND w.lock = j.lock) + (j.state = 1) AS waiting,
       iif(j.state = 1, j.id, (SELECT w.id FROM job w WHERE w.state = -1 AND w.lock = j.lock
                               ORDER BY w.priority DESC, w.id LIMIT 1)) AS next
FROM job j JOIN body b ON b.id = j.id LEFT JOIN session s ON s.id = j.owner AND j.state = 3
WHERE j.lock IS NOT NULL AND j.state IN (1, 3);

INSERT INTO meta VALUES ('policy', 0), ('claim_order', 0), ('aging', 0), ('policy_text', '');
