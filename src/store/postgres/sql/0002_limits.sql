-- Schema 2: limits, gates, permits, parked lanes, turns, locks, duties. What each is for stands in
-- 0002_limits.sql of SQLite; here only what differs.

-- The numbers are those of struct gate_params, made from the text by whoever wrote it.
CREATE TABLE pawl.limits (
    id           bigint PRIMARY KEY,
    name         text COLLATE "C" NOT NULL UNIQUE,
    text         text COLLATE "C",
    config       text COLLATE "C",
    by_operator  boolean NOT NULL DEFAULT false,
    changed_at   bigint NOT NULL,
    queue        text COLLATE "C",
    kind         text COLLATE "C",
    hosts        text[] COLLATE "C",
    each         smallint NOT NULL DEFAULT 0,
    replaces     boolean NOT NULL DEFAULT false,
    cap          integer NOT NULL DEFAULT 0,
    interval_us  bigint NOT NULL DEFAULT 0,
    burst        integer NOT NULL DEFAULT 1,
    adaptive     boolean NOT NULL DEFAULT false,
    slowest_us   bigint NOT NULL DEFAULT 0,
    respect      boolean NOT NULL DEFAULT true,
    pause_us     bigint NOT NULL DEFAULT 0,
    max_pause_us bigint NOT NULL DEFAULT 0,
    threshold    integer NOT NULL DEFAULT 0,
    percent      integer NOT NULL DEFAULT 0,
    min_calls    integer NOT NULL DEFAULT 0,
    window_us    bigint NOT NULL DEFAULT 0,
    open_us      bigint NOT NULL DEFAULT 0,
    max_open_us  bigint NOT NULL DEFAULT 0
);

-- id: digest of (limit's name, value), so that both are found without asking. shut: lanes are parked on
-- it, so whoever frees a permit writes a wake for it.
CREATE TABLE pawl.gate (
    id              bigint PRIMARY KEY,
    limit_id        bigint NOT NULL,
    value           text COLLATE "C" NOT NULL,
    shut            boolean NOT NULL DEFAULT false,
    wake_at         bigint,
    policy          bigint NOT NULL DEFAULT 0,
    tat             bigint NOT NULL DEFAULT 0,
    interval_us     bigint NOT NULL DEFAULT 0,
    cut_at          bigint NOT NULL DEFAULT 0,
    raised_at       bigint NOT NULL DEFAULT 0,
    held_until      bigint NOT NULL DEFAULT 0,
    held_at         bigint NOT NULL DEFAULT 0,
    held_n          integer NOT NULL DEFAULT 0,
    held_asked      boolean NOT NULL DEFAULT false,
    breaker         smallint NOT NULL DEFAULT 0,
    since           bigint NOT NULL DEFAULT 0,
    until           bigint NOT NULL DEFAULT 0,
    failures        integer NOT NULL DEFAULT 0,
    opens           integer NOT NULL DEFAULT 0,
    epoch           bigint NOT NULL DEFAULT 0,
    probe_job       bigint NOT NULL DEFAULT 0,
    probe_fence     bigint NOT NULL DEFAULT 0,
    window_at       bigint NOT NULL DEFAULT 0,
    window_calls    integer NOT NULL DEFAULT 0,
    window_failures integer NOT NULL DEFAULT 0,
    why             text COLLATE "C"
) WITH (fillfactor = 50);
CREATE INDEX gate_limit ON pawl.gate (limit_id, value);
CREATE INDEX gate_wake ON pawl.gate (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE pawl.permit (
    job  bigint NOT NULL,
    gate bigint NOT NULL,
    PRIMARY KEY (job, gate)
);
CREATE INDEX permit_gate ON pawl.permit (gate);

ALTER TABLE pawl.lane ADD COLUMN gates bigint[] NOT NULL DEFAULT '{}';
ALTER TABLE pawl.lane ADD COLUMN policy bigint NOT NULL DEFAULT 0;
ALTER TABLE pawl.lane ADD COLUMN parked bigint;
ALTER TABLE pawl.lane ADD COLUMN turn bigint NOT NULL DEFAULT 0;
DROP INDEX pawl.lane_ready;
CREATE INDEX lane_ready ON pawl.lane (class, rank, turn, head) WHERE head IS NOT NULL AND parked IS NULL;
CREATE INDEX lane_parked ON pawl.lane (parked, rank, turn, head) WHERE parked IS NOT NULL;

-- Beside jobs of a lane a wake may tell of a gate that has room again, or of a lock that is free or has
-- a new waiter; the other columns are then empty.
ALTER TABLE pawl.wake ADD COLUMN gate bigint;
ALTER TABLE pawl.wake ADD COLUMN lock bigint;

ALTER TABLE pawl.job ADD COLUMN lock bigint;
ALTER TABLE pawl.job ADD COLUMN aged integer NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX job_lock ON pawl.job (lock) WHERE lock IS NOT NULL AND state IN (1, 3);
CREATE INDEX job_held ON pawl.job (lock, rank, id) WHERE state = -1;

ALTER TABLE pawl.session ADD COLUMN preflight text COLLATE "C" NOT NULL DEFAULT '{}';

CREATE TABLE pawl.duty (
    name    text COLLATE "C" PRIMARY KEY,
    session bigint NOT NULL,
    until   bigint NOT NULL,
    done    bigint NOT NULL
);

CREATE INDEX event_rare ON pawl.event (xid, id) WHERE type IN (5, 9, 17, 22, 23, 24, 25, 26, 27, 28, 29, 30);

INSERT INTO pawl.meta VALUES ('policy', '0'), ('claim_order', '0'), ('aging', '0'), ('policy_text', '');
