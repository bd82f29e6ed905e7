-- Schema 1. Append-only: a released migration is never edited; its checksum is kept in `migration`.
-- Times are microseconds since 1970 on the server's clock. `pawl.` stands for the configured schema.
-- Ranks are negated priorities, so that (rank, id) rises in the order in which jobs are taken.

-- oldest: binaries that know this version may still work with the schema.
CREATE TABLE pawl.migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    oldest     integer NOT NULL,
    applied_at bigint NOT NULL
);

-- channel: what to NOTIFY; empty when that is switched off.
CREATE TABLE pawl.meta (
    key   text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

-- What the server holds in memory alone: recovery after a crash empties a table that is not logged, and
-- so does a standby that takes over. While this is the same, a transaction's number means one
-- transaction; after a crash numbers that reached no disk are given out again. Filled by the sweeper.
CREATE UNLOGGED TABLE pawl.boot (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id  text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text
);
INSERT INTO pawl.boot DEFAULT VALUES;

CREATE SEQUENCE pawl.job_id MAXVALUE 9007199254740991;
CREATE SEQUENCE pawl.event_id MAXVALUE 9007199254740991;
CREATE SEQUENCE pawl.session_id MAXVALUE 9007199254740991;

-- Queues that were ever paused.
CREATE TABLE pawl.queue (
    name      text COLLATE "C" PRIMARY KEY,
    paused_at bigint
);

-- A lane is (queue, kind, host), a class (queue, kind); their ids are digests of the names, so that
-- an enqueue needs to ask nobody. (rank, head) is never behind the lane's best ready job, as far as
-- no wake tells of a better one; null: it has none.
CREATE TABLE pawl.lane (
    id      bigint PRIMARY KEY,
    class   bigint NOT NULL,
    queue   text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    host    text COLLATE "C" NOT NULL,
    rank    integer NOT NULL,
    head    bigint,
    head_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX lane_ready ON pawl.lane (class, rank, head) WHERE head IS NOT NULL;

-- Jobs of this lane became ready, the best of them this one. Written by every path that makes jobs
-- ready, one row a transaction and lane; folded into the lanes by the next claim.
CREATE TABLE pawl.wake (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane  bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind  text COLLATE "C" NOT NULL,
    host  text COLLATE "C" NOT NULL,
    rank  integer NOT NULL,
    job   bigint NOT NULL
);

-- What a job is. Never updated, but for a requeue or replace by its own key, and by `set`.
CREATE TABLE pawl.body (
    id           bigint PRIMARY KEY,
    queue        text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    host         text COLLATE "C" NOT NULL,
    key          text COLLATE "C",
    payload      text COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    max_attempts integer,
    timeout_us   bigint,
    parent       bigint,
    group_id     bigint,
    trace        text COLLATE "C",
    expires_at   bigint,
    lock         text COLLATE "C"
);

-- Where a job stands that has not ended: narrow, because every step of its life rewrites it.
CREATE TABLE pawl.job (
    id           bigint PRIMARY KEY,
    lane         bigint NOT NULL,
    fence        bigint NOT NULL DEFAULT 0,
    owner        bigint,
    claimed_at   bigint,
    available_at bigint NOT NULL,
    rank         integer NOT NULL,
    attempt      integer NOT NULL DEFAULT 0,
    transient    integer NOT NULL DEFAULT 0,
    lost         integer NOT NULL DEFAULT 0,
    state        smallint NOT NULL,
    reason       smallint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_ready ON pawl.job (lane, rank, id) WHERE state = 1;
CREATE INDEX job_waiting ON pawl.job (available_at) WHERE state = 2;
CREATE INDEX job_running ON pawl.job (owner) WHERE state = 3;

-- Jobs that have ended. A retry moves them back with the fence kept (I2).
CREATE TABLE pawl.settled (
    id           bigint PRIMARY KEY,
    lane         bigint NOT NULL,
    fence        bigint NOT NULL,
    claimed_at   bigint,
    available_at bigint NOT NULL,
    finished_at  bigint NOT NULL,
    rank         integer NOT NULL,
    attempt      integer NOT NULL,
    transient    integer NOT NULL,
    lost         integer NOT NULL,
    state        smallint NOT NULL,
    reason       smallint NOT NULL
);
CREATE INDEX settled_ended ON pawl.settled (state, finished_at);

-- Running jobs that were asked to end; void when the fence has moved on.
CREATE TABLE pawl.cancel_ask (
    job     bigint PRIMARY KEY,
    fence   bigint NOT NULL,
    session bigint NOT NULL
);
CREATE INDEX cancel_ask_session ON pawl.cancel_ask (session);
-- Leases taken away by an operator, until their worker has heard of it.
CREATE TABLE pawl.revoked (
    session bigint NOT NULL,
    job     bigint NOT NULL,
    fence   bigint NOT NULL,
    PRIMARY KEY (session, job, fence)
);
-- The latest a running job said of itself; void when the fence has moved on.
CREATE TABLE pawl.progress (
    job      bigint PRIMARY KEY,
    fence    bigint NOT NULL,
    progress text COLLATE "C" NOT NULL
);
-- Failed because their workers kept dying.
CREATE TABLE pawl.poison (
    job bigint PRIMARY KEY
);
CREATE TABLE pawl.result (
    job    bigint PRIMARY KEY,
    result text COLLATE "C" NOT NULL
);

-- Who holds a key: the first 16 bytes of SHA-256 over (queue, key). expires is set when its job is
-- pruned.
CREATE TABLE pawl.job_key (
    digest  bytea PRIMARY KEY,
    id      bigint NOT NULL,
    expires bigint
);
CREATE INDEX job_key_expires ON pawl.job_key (expires) WHERE expires IS NOT NULL;

-- One row per ended attempt; a running one is the job row itself.
CREATE TABLE pawl.attempt (
    job         bigint NOT NULL,
    fence       bigint NOT NULL,
    session     bigint NOT NULL,
    started_at  bigint NOT NULL,
    finished_at bigint NOT NULL,
    log_bytes   bigint,
    fingerprint bigint,
    attempt     integer NOT NULL,
    exit_code   integer,
    outcome     smallint NOT NULL,
    class       smallint NOT NULL,
    error       text COLLATE "C",
    PRIMARY KEY (job, fence)
);

CREATE TABLE pawl.session (
    id          bigint PRIMARY KEY DEFAULT nextval('pawl.session_id'),
    uid         text COLLATE "C" NOT NULL UNIQUE,
    name        text COLLATE "C" NOT NULL,
    host        text COLLATE "C" NOT NULL,
    pid         integer NOT NULL,
    started_at  bigint NOT NULL,
    renewed_at  bigint NOT NULL,
    lease_until bigint NOT NULL,
    ended_at    bigint,
    lost        boolean NOT NULL DEFAULT false,
    command     smallint NOT NULL DEFAULT 0,
    slots       integer NOT NULL,
    running     integer NOT NULL DEFAULT 0,
    pools       text COLLATE "C" NOT NULL,
    filter      text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX session_live ON pawl.session (id) WHERE ended_at IS NULL;
CREATE INDEX session_ended ON pawl.session (ended_at) WHERE ended_at IS NOT NULL;

-- The audit log, committed with what it tells of (I9). Whoever follows it goes by xid: below the
-- oldest running transaction nothing can appear any more.
CREATE TABLE pawl.event (
    id      bigint PRIMARY KEY DEFAULT nextval('pawl.event_id'),
    at      bigint NOT NULL,
    job     bigint,
    fence   bigint,
    session bigint,
    xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    type    smallint NOT NULL,
    detail  text COLLATE "C"
);
CREATE INDEX event_xid ON pawl.event (xid);

-- Metrics of the session; session 0 holds those of sessions that are gone.
CREATE TABLE pawl.metric (
    session bigint NOT NULL,
    name    text COLLATE "C" NOT NULL,
    value   bigint NOT NULL,
    PRIMARY KEY (session, name)
) WITH (fillfactor = 50);

-- Counts by class: the class's row plus the sum of its deltas. No step of a job writes a row that
-- another transaction also writes; the sweeper folds.
CREATE TABLE pawl.class (
    id          bigint PRIMARY KEY,
    queue       text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    n_blocked   bigint NOT NULL,
    n_queued    bigint NOT NULL,
    n_waiting   bigint NOT NULL,
    n_running   bigint NOT NULL,
    n_done      bigint NOT NULL,
    n_skipped   bigint NOT NULL,
    n_failed    bigint NOT NULL,
    n_cancelled bigint NOT NULL,
    n_retries   bigint NOT NULL,
    first_at    bigint
);
CREATE TABLE pawl.throughput (
    class          bigint NOT NULL,
    slot           bigint NOT NULL,
    n_done         bigint NOT NULL,
    n_skipped      bigint NOT NULL,
    n_failed       bigint NOT NULL,
    n_retried      bigint NOT NULL,
    n_lost         bigint NOT NULL,
    backoff_us     bigint NOT NULL,
    retry_after_us bigint NOT NULL,
    PRIMARY KEY (class, slot)
);
-- n_…: how many jobs entered (or left) a state. e_…: leases that ended so.
CREATE TABLE pawl.delta (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    class          bigint NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    at             bigint NOT NULL,
    n_blocked      integer NOT NULL DEFAULT 0,
    n_queued       integer NOT NULL DEFAULT 0,
    n_waiting      integer NOT NULL DEFAULT 0,
    n_running      integer NOT NULL DEFAULT 0,
    n_done         integer NOT NULL DEFAULT 0,
    n_skipped      integer NOT NULL DEFAULT 0,
    n_failed       integer NOT NULL DEFAULT 0,
    n_cancelled    integer NOT NULL DEFAULT 0,
    e_done         integer NOT NULL DEFAULT 0,
    e_skipped      integer NOT NULL DEFAULT 0,
    e_failed       integer NOT NULL DEFAULT 0,
    e_retried      integer NOT NULL DEFAULT 0,
    e_lost         integer NOT NULL DEFAULT 0,
    backoff_us     bigint NOT NULL DEFAULT 0,
    retry_after_us bigint NOT NULL DEFAULT 0,
    first_at       bigint
);
