-- Schema 1. Append-only: a released migration is never edited; its checksum is kept in `migration`.
-- Times are microseconds on the store's clock unless a column says wall.

CREATE TABLE migration (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);

-- boot_id, base_wall, base_boot: the store's clock (I13). next_job: the next id, never handed out
-- twice (I2: a reused id would let an old fence match a new job). change: grows with every pause.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE queue (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    paused_at INTEGER
);

-- A class is (queue, kind): what a worker may or may not take. It carries the exact counts by state
-- and the best ready job of all its lanes.
CREATE TABLE class (
    id            INTEGER PRIMARY KEY,
    queue         INTEGER NOT NULL REFERENCES queue,
    kind          TEXT NOT NULL,
    paused        INTEGER NOT NULL DEFAULT 0,
    head_priority INTEGER,
    head_id       INTEGER,
    n_blocked     INTEGER NOT NULL DEFAULT 0,
    n_queued      INTEGER NOT NULL DEFAULT 0,
    n_waiting     INTEGER NOT NULL DEFAULT 0,
    n_running     INTEGER NOT NULL DEFAULT 0,
    n_done        INTEGER NOT NULL DEFAULT 0,
    n_skipped     INTEGER NOT NULL DEFAULT 0,
    n_failed      INTEGER NOT NULL DEFAULT 0,
    n_cancelled   INTEGER NOT NULL DEFAULT 0,
    n_retries     INTEGER NOT NULL DEFAULT 0,
    first_at      INTEGER,
    UNIQUE (queue, kind)
);
CREATE INDEX class_ready ON class (head_priority DESC, head_id)
    WHERE head_id IS NOT NULL AND paused = 0;

-- What ended per class in slots of ten seconds, for rates and reports: no count over history is ever
-- needed. The last two are what retries will wait, by reason.
CREATE TABLE throughput (
    class          INTEGER NOT NULL,
    slot           INTEGER NOT NULL,
    n_done         INTEGER NOT NULL,
    n_skipped      INTEGER NOT NULL,
    n_failed       INTEGER NOT NULL,
    n_retried      INTEGER NOT NULL,
    n_lost         INTEGER NOT NULL,
    backoff_us     INTEGER NOT NULL,
    retry_after_us INTEGER NOT NULL,
    PRIMARY KEY (class, slot)
) WITHOUT ROWID;

-- A lane is (queue, kind, host), with its exact head: the best ready job, or none.
CREATE TABLE lane (
    id            INTEGER PRIMARY KEY,
    class         INTEGER NOT NULL REFERENCES class,
    host          TEXT NOT NULL DEFAULT '',
    head_priority INTEGER,
    head_id       INTEGER,
    UNIQUE (class, host)
);
CREATE INDEX lane_ready ON lane (class, head_priority DESC, head_id) WHERE head_id IS NOT NULL;

-- What a job is. Never updated, but for a requeue or replace by its own key.
CREATE TABLE body (
    id           INTEGER PRIMARY KEY,
    lane         INTEGER NOT NULL,
    key          TEXT,
    payload      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    max_attempts INTEGER,
    timeout_us   INTEGER,
    parent       INTEGER,
    group_id     INTEGER,
    trace        TEXT,
    expires_at   INTEGER,
    lock         TEXT
);

-- Where a job stands: narrow, because every step of its life rewrites it.
CREATE TABLE job (
    id           INTEGER PRIMARY KEY,
    lane         INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    attempt      INTEGER NOT NULL DEFAULT 0,
    transient    INTEGER NOT NULL DEFAULT 0,
    lost         INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER NOT NULL DEFAULT 0,
    owner        INTEGER,
    claimed_at   INTEGER,
    available_at INTEGER,
    finished_at  INTEGER,
    reason       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX job_ready   ON job (lane, priority DESC, id) WHERE state = 1;
CREATE INDEX job_waiting ON job (available_at) WHERE state = 2;
CREATE INDEX job_running ON job (owner) WHERE state = 3;
CREATE INDEX job_ended   ON job (state, finished_at) WHERE state >= 4;

-- What few jobs have lies beside the hot row: every column and index there costs each step of all.
-- Jobs that wait for a time on the wall clock (--at); their available_at is null while they wait.
CREATE TABLE due (
    at_wall INTEGER NOT NULL,
    job     INTEGER NOT NULL,
    PRIMARY KEY (at_wall, job)
) WITHOUT ROWID;
CREATE INDEX due_job ON due (job);
-- Running jobs that were asked to end; void when the fence has moved on.
CREATE TABLE cancel_ask (
    job     INTEGER PRIMARY KEY,
    fence   INTEGER NOT NULL,
    session INTEGER NOT NULL
);
-- Leases taken away by an operator, until their worker has heard of it.
CREATE TABLE revoked (
    session INTEGER NOT NULL,
    job     INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    PRIMARY KEY (session, job, fence)
) WITHOUT ROWID;
-- The latest a running job said of itself; void when the fence has moved on.
CREATE TABLE progress (
    job      INTEGER PRIMARY KEY,
    fence    INTEGER NOT NULL,
    progress TEXT NOT NULL
);
-- Failed because their workers kept dying.
CREATE TABLE poison (
    job INTEGER PRIMARY KEY
);

CREATE TABLE result (
    job    INTEGER PRIMARY KEY,
    result TEXT NOT NULL
);

-- Who holds a key: the first 16 bytes of SHA-256 over (queue, key). expires is set when its job is
-- pruned.
CREATE TABLE job_key (
    digest  BLOB PRIMARY KEY,
    id      INTEGER NOT NULL,
    expires INTEGER
) WITHOUT ROWID;
CREATE INDEX job_key_expires ON job_key (expires) WHERE expires IS NOT NULL;

-- One row per ended attempt; a running one is the job row itself.
CREATE TABLE attempt (
    job         INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    outcome     INTEGER NOT NULL,
    class       INTEGER NOT NULL,
    exit_code   INTEGER,
    log_bytes   INTEGER,
    error       TEXT,
    fingerprint INTEGER,
    PRIMARY KEY (job, fence)
) WITHOUT ROWID;

CREATE TABLE session (
    id          INTEGER PRIMARY KEY,
    uid         TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    host        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    renewed_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    ended_at    INTEGER,
    lost        INTEGER NOT NULL DEFAULT 0,
    command     INTEGER NOT NULL DEFAULT 0,
    slots       INTEGER NOT NULL,
    running     INTEGER NOT NULL DEFAULT 0,
    pools       TEXT NOT NULL,
    filter      TEXT NOT NULL
);
CREATE INDEX session_live ON session (id) WHERE ended_at IS NULL;
CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;

-- The audit log, committed with what it tells of (I9).
CREATE TABLE event (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    type    INTEGER NOT NULL,
    job     INTEGER,
    fence   INTEGER,
    session INTEGER,
    detail  TEXT
);

-- Metrics of the session; session 0 holds those of sessions that are gone.
CREATE TABLE metric (
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    value   INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) WITHOUT ROWID;

-- One job with everything `list` and `show` print; internal.
CREATE VIEW job_row AS
SELECT j.id, j.priority, j.state, j.attempt, j.transient, j.lost, j.fence, s.name AS worker,
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

-- For people and their tools: same columns on every store, documented in docs/views.md.
CREATE VIEW v_jobs AS
SELECT j.id, q.name AS queue, c.kind, nullif(l.host, '') AS host, b.key, j.priority,
       CASE j.state WHEN 0 THEN 'blocked' WHEN 1 THEN 'queued' WHEN 2 THEN 'waiting'
            WHEN 3 THEN 'running' WHEN 4 THEN 'done' WHEN 5 THEN 'skipped' WHEN 6 THEN 'failed'
            ELSE 'cancelled' END AS state,
       j.attempt, j.transient AS transient_attempts, j.lost, j.fence, s.name AS worker,
       b.created_at, j.claimed_at, j.available_at,
       j.finished_at, b.payload, r.result
FROM job j JOIN body b ON b.id = j.id JOIN lane l ON l.id = j.lane JOIN class c ON c.id = l.class
     JOIN queue q ON q.id = c.queue LEFT JOIN session s ON s.id = j.owner
     LEFT JOIN result r ON r.job = j.id;

CREATE VIEW v_attempts AS
SELECT a.job, a.attempt, a.fence, s.name AS worker, a.started_at, a.finished_at,
       CASE a.outcome WHEN 0 THEN 'done' WHEN 1 THEN 'skipped' WHEN 2 THEN 'failed'
            WHEN 3 THEN 'retry' WHEN 4 THEN 'released' WHEN 5 THEN 'cancelled' ELSE 'lost' END AS outcome,
       CASE a.class WHEN 1 THEN 'transient' WHEN 2 THEN 'error' WHEN 3 THEN 'fatal'
            WHEN 4 THEN 'lost' END AS class,
       a.exit_code, a.error, a.log_bytes
FROM attempt a LEFT JOIN session s ON s.id = a.session;

CREATE VIEW v_events AS
SELECT e.id, e.at, e.type, e.job, e.fence, s.name AS worker, e.detail
FROM event e LEFT JOIN session s ON s.id = e.session;
