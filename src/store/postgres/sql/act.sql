-- What an operator does to a batch of jobs, in few statements: the rows are locked in the order of
-- their ids, looked at, then changed together with counts, wakes and events (I9). No table is joined
-- that the planner could begin with, and `state + 0` keeps it from the partial indexes: both would
-- cost a walk over all jobs where statistics are old.

-- define: now
t AS MATERIALIZED (SELECT pawl.now_us() AS now)

-- define: body
(SELECT queue, kind, host, key, lock AS lock_key FROM pawl.body WHERE body.id = g.id OFFSET 0) b

-- Locks that are free, or have another waiter.
-- define: unlock
INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
    SELECT 0, '', '', '', min(rank), 0, lock FROM

-- define: wake
INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
    SELECT DISTINCT ON (lane) lane, queue, kind, host, rank, id FROM

-- name: act_look
SELECT j.id, abs(j.state)::int, j.fence, j.finished_at,
       (SELECT s.ended_at IS NULL AND s.lease_until > pawl.now_us() FROM pawl.session s
        WHERE s.id = j.owner)
FROM unnest($1::bigint[]) u (id) CROSS JOIN LATERAL
     (SELECT id, state, fence, NULL::bigint AS finished_at, owner FROM pawl.job WHERE id = u.id
      UNION ALL
      SELECT id, state, fence, finished_at, NULL FROM pawl.settled WHERE id = u.id OFFSET 0) j
ORDER BY j.id;
-- name: act_lock
SELECT j.id, abs(j.state)::int, j.fence, NULL::bigint,
       (SELECT s.ended_at IS NULL AND s.lease_until > pawl.now_us() FROM pawl.session s
        WHERE s.id = j.owner)
FROM pawl.job j WHERE j.id = ANY ($1::bigint[]) ORDER BY j.id FOR UPDATE OF j;
-- name: act_lock_ended
SELECT j.id, j.state::int, j.fence, j.finished_at, NULL::boolean
FROM pawl.settled j WHERE j.id = ANY ($1::bigint[]) ORDER BY j.id FOR UPDATE OF j;

-- Ended jobs are queued again with a fresh budget, or with $2 attempts more; the fence is kept (I2).
-- name: act_retry
WITH @now, gone AS (
    DELETE FROM pawl.settled WHERE id = ANY ($1::bigint[]) RETURNING *
), named AS MATERIALIZED (
    SELECT g.*, b.queue, b.kind, b.host, pawl.lock_id(b.lock_key) AS lock
    FROM gone g CROSS JOIN LATERAL @body
), put AS (
    INSERT INTO pawl.job (id, lane, fence, available_at, rank, attempt, state, lock)
    SELECT g.id, g.lane, g.fence, t.now, g.rank, CASE WHEN $2::int > 0 THEN g.attempt ELSE 0 END,
           CASE WHEN g.lock IS NULL THEN 1 ELSE -1 END, g.lock
    FROM named g, t
), more AS (
    UPDATE pawl.body b SET max_attempts = g.attempt + $2::int FROM gone g
    WHERE b.id = g.id AND $2::int > 0
), no_poison AS (
    DELETE FROM pawl.poison WHERE job = ANY ($1::bigint[])
), no_result AS (
    DELETE FROM pawl.result WHERE job = ANY ($1::bigint[])
), woken AS (
    @wake named WHERE lock IS NULL ORDER BY lane, rank, id
), unlocked AS (
    @unlock named WHERE lock IS NOT NULL GROUP BY lock
), counted AS (
    INSERT INTO pawl.delta (class, queue, kind, at, n_queued, n_done, n_skipped, n_failed, n_cancelled)
    SELECT pawl.name_id(queue, kind), queue, kind, t.now, count(*), -sum((state = 4)::int),
           -sum((state = 5)::int), -sum((state = 6)::int), -sum((state = 7)::int)
    FROM named, t GROUP BY queue, kind, t.now
)
INSERT INTO pawl.event (at, type, job, fence)
SELECT t.now, 10, g.id, nullif(g.fence, 0) FROM gone g, t ORDER BY g.id;

-- $1 have not started and end now; $2 run and are only asked: their workers hear of it with the next
-- renewal.
-- name: act_cancel
WITH @now, gone AS (
    DELETE FROM pawl.job WHERE id = ANY ($1::bigint[]) AND state IN (-1, 0, 1, 2) RETURNING *
), unlocked AS (
    @unlock gone WHERE lock IS NOT NULL GROUP BY lock
), put AS (
    INSERT INTO pawl.settled (id, lane, fence, claimed_at, available_at, finished_at, rank, attempt,
                              transient, lost, state, reason)
    SELECT g.id, g.lane, g.fence, g.claimed_at, g.available_at, t.now, g.rank + g.aged, g.attempt,
           g.transient, g.lost, 7, 0
    FROM gone g, t
), counted AS (
    INSERT INTO pawl.delta (class, queue, kind, at, n_blocked, n_queued, n_waiting, n_cancelled)
    SELECT pawl.name_id(b.queue, b.kind), b.queue, b.kind, t.now, -sum((g.state = 0)::int),
           -sum((abs(g.state) = 1)::int), -sum((g.state = 2)::int), count(*)
    FROM gone g CROSS JOIN LATERAL @body CROSS JOIN t GROUP BY b.queue, b.kind, t.now
), asked AS (
    INSERT INTO pawl.cancel_ask AS k (job, fence, session)
    SELECT id, fence, owner FROM pawl.job WHERE id = ANY ($2::bigint[]) AND state + 0 = 3
    ON CONFLICT (job) DO UPDATE SET fence = excluded.fence, session = excluded.session
    WHERE k.fence <> excluded.fence
    RETURNING k.job, k.fence
)
INSERT INTO pawl.event (at, type, job, fence)
SELECT t.now, e.type, e.id, nullif(e.fence, 0)
FROM (SELECT 6 AS type, id, fence FROM gone UNION ALL SELECT 12, job, fence FROM asked) e, t
ORDER BY e.id;

-- Ended jobs go with all that belongs to them; their keys stay taken for $2. Returns whose output was
-- kept in a log.
-- name: act_prune
WITH @now, gone AS (
    DELETE FROM pawl.settled WHERE id = ANY ($1::bigint[]) RETURNING id, fence, state, finished_at
), named AS MATERIALIZED (
    SELECT g.*, b.queue, b.kind, b.key FROM gone g CROSS JOIN LATERAL @body
), no_body AS (
    DELETE FROM pawl.body WHERE id = ANY ($1::bigint[])
), tries AS (
    DELETE FROM pawl.attempt WHERE job = ANY ($1::bigint[]) RETURNING job, fence, log_bytes
), no_fetch AS (
    DELETE FROM pawl.fetch WHERE job = ANY ($1::bigint[]) AND artifact IS NULL
), no_result AS (
    DELETE FROM pawl.result WHERE job = ANY ($1::bigint[])
), no_poison AS (
    DELETE FROM pawl.poison WHERE job = ANY ($1::bigint[])
), kept AS (
    UPDATE pawl.job_key k SET expires = d.expires
    FROM (SELECT pawl.key_digest(queue, key) AS digest, finished_at + $2::bigint AS expires
          FROM named WHERE key IS NOT NULL ORDER BY 1) d
    WHERE k.digest = d.digest
), counted AS (
    INSERT INTO pawl.delta (class, queue, kind, at, n_done, n_skipped, n_failed, n_cancelled)
    SELECT pawl.name_id(queue, kind), queue, kind, t.now, -sum((state = 4)::int),
           -sum((state = 5)::int), -sum((state = 6)::int), -sum((state = 7)::int)
    FROM named, t GROUP BY queue, kind, t.now
), told AS (
    INSERT INTO pawl.event (at, type, job, fence)
    SELECT t.now, 19, g.id, nullif(g.fence, 0) FROM gone g, t ORDER BY g.id
)
SELECT job, fence FROM tries WHERE log_bytes <> 0;
-- name: keys_drop
DELETE FROM pawl.job_key WHERE digest = ANY (ARRAY
    (SELECT digest FROM pawl.job_key
     WHERE expires IS NOT NULL AND expires <= (SELECT pawl.now_us())
     ORDER BY expires LIMIT 5000 FOR UPDATE SKIP LOCKED));
-- name: throughput_drop
DELETE FROM pawl.throughput WHERE slot < (SELECT pawl.now_us() / 10000000 - 7 * 8640);
-- name: events_drop
DELETE FROM pawl.event WHERE id < (SELECT max(id) FROM pawl.event) AND id = ANY (ARRAY
    (SELECT id FROM (SELECT id, at FROM pawl.event ORDER BY id LIMIT 5000) x WHERE at < $1::bigint));

-- Waiting jobs are ready now.
-- name: act_ready
WITH @now, up AS (
    UPDATE pawl.job j SET state = CASE WHEN j.lock IS NULL THEN 1 ELSE -1 END, available_at = t.now,
        reason = 0
    FROM t WHERE j.id = ANY ($1::bigint[]) AND j.state + 0 = 2
    RETURNING j.id, j.lane, j.rank, j.fence, j.lock
), named AS MATERIALIZED (
    SELECT g.*, b.queue, b.kind, b.host FROM up g CROSS JOIN LATERAL @body
), woken AS (
    @wake named WHERE lock IS NULL ORDER BY lane, rank, id
), unlocked AS (
    @unlock named WHERE lock IS NOT NULL GROUP BY lock
), counted AS (
    INSERT INTO pawl.delta (class, queue, kind, at, n_waiting, n_queued)
    SELECT pawl.name_id(queue, kind), queue, kind, t.now, -count(*), count(*)
    FROM named, t GROUP BY queue, kind, t.now
)
INSERT INTO pawl.event (at, type, job, fence)
SELECT t.now, 20, u.id, nullif(u.fence, 0) FROM up u, t ORDER BY u.id;
-- name: act_revoke
INSERT INTO pawl.revoked (session, job, fence)
SELECT owner, id, fence FROM pawl.job WHERE id = $1::bigint AND state + 0 = 3 ON CONFLICT DO NOTHING;

-- New values for jobs that have not started; null: as it was. $2 rank, $3 payload, $4 attempts,
-- $5 timeout; $6 a new time: $7 on the wall clock, else $8 from now. $9 the states they are in; $1 must
-- rise.
-- name: act_set
WITH t AS MATERIALIZED (
    SELECT x.now, coalesce($7::bigint > x.now, $8::bigint > 0) AS wait,
           CASE WHEN $7::bigint > x.now THEN $7::bigint
                WHEN $7::bigint IS NULL AND $8::bigint > 0 THEN x.now + $8::bigint
                ELSE x.now END AS due
    FROM (SELECT pawl.now_us() AS now) x
), up AS (
    UPDATE pawl.job j SET
        rank = coalesce($2::int, j.rank + CASE WHEN $6::boolean AND t.wait THEN j.aged ELSE 0 END),
        aged = CASE WHEN $2::int IS NULL AND NOT ($6::boolean AND t.wait) THEN j.aged ELSE 0 END,
        state = CASE WHEN $6::boolean AND t.wait OR (NOT $6::boolean AND j.state = 2) THEN 2
                     WHEN j.lock IS NULL THEN 1 ELSE -1 END,
        available_at = CASE WHEN $6::boolean THEN t.due ELSE j.available_at END,
        reason = CASE WHEN NOT $6::boolean THEN j.reason WHEN t.wait THEN 1 ELSE 0 END
    FROM t WHERE j.id = ANY ($1::bigint[])
    RETURNING j.id, j.lane, j.rank, j.fence, j.state, j.lock,
              ($9::int[])[width_bucket(j.id, $1::bigint[])] AS was
), body AS (
    UPDATE pawl.body b SET payload = coalesce($3::text, b.payload),
        max_attempts = coalesce($4::int, b.max_attempts),
        timeout_us = coalesce($5::bigint, b.timeout_us)
    WHERE b.id = ANY ($1::bigint[])
      AND ($3::text IS NOT NULL OR $4::int IS NOT NULL OR $5::bigint IS NOT NULL)
), named AS MATERIALIZED (
    SELECT g.*, b.queue, b.kind, b.host FROM up g CROSS JOIN LATERAL @body
), woken AS (
    @wake named
    WHERE state = 1 AND ($6::boolean OR $2::int IS NOT NULL) ORDER BY lane, rank, id
), unlocked AS (
    @unlock named WHERE lock IS NOT NULL GROUP BY lock
), counted AS (
    INSERT INTO pawl.delta (class, queue, kind, at, n_queued, n_waiting)
    SELECT pawl.name_id(queue, kind), queue, kind, t.now, sum((abs(state) = 1)::int - (was = 1)::int),
           sum((state = 2)::int - (was = 2)::int)
    FROM named, t WHERE abs(state) <> was GROUP BY queue, kind, t.now
)
INSERT INTO pawl.event (at, type, job, fence)
SELECT t.now, 21, u.id, nullif(u.fence, 0) FROM up u, t ORDER BY u.id;
