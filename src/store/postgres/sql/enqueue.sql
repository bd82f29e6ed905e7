-- Adding jobs.

-- name: add_jobs
SELECT ord, id, outcome, state
FROM pawl.add_jobs((SELECT array_agg(nextval('pawl.job_id')) FROM generate_series(1, cardinality($1::text[]))),
                   $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::bigint[],
                   $8::bigint[], $9::int[], $10::bigint[], $11::bigint[], $12::int, $13::text[]);
-- name: take_ids
SELECT nextval('pawl.job_id'), pawl.now_us() FROM generate_series(1, $1::int);
-- name: copy_keys
COPY pawl.job_key (digest, id) FROM STDIN (FORMAT binary);
-- name: copy_bodies
COPY pawl.body (id, queue, kind, host, key, payload, created_at, max_attempts, timeout_us, parent, lock)
FROM STDIN (FORMAT binary);
-- name: copy_jobs
COPY pawl.job (id, lane, available_at, rank, state, reason, lock) FROM STDIN (FORMAT binary);
-- name: copy_events
COPY pawl.event (at, job, type) FROM STDIN (FORMAT binary);
-- name: load_places
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[],
                         $7::int[], $8::int[], $9::int[])
        u (lane, class, queue, kind, host, job, rank, queued, waiting)
), w AS (
    INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
    SELECT lane, queue, kind, host, rank, job FROM u WHERE job <> 0
)
INSERT INTO pawl.delta (class, queue, kind, at, n_queued, n_waiting, first_at)
SELECT class, min(queue), min(kind), $10::bigint, sum(queued), sum(waiting), $10::bigint
FROM u GROUP BY class;
-- name: load_locks
INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
SELECT 0, '', '', '', min(u.rank), 0, u.lock FROM unnest($1::bigint[], $2::int[]) u (lock, rank)
GROUP BY u.lock;
