-- The status view: counters, never a count over history.

-- define: in_queue
($2::text IS NULL OR (SELECT b.queue FROM pawl.body b WHERE b.id = newest.id) = $2::text)

-- The class's row and its deltas, read in one snapshot.
-- name: status_classes
SELECT c.queue, c.kind,
       EXISTS (SELECT 1 FROM pawl.queue q WHERE q.name = c.queue AND q.paused_at IS NOT NULL),
       c.n0, c.n1, c.n2, c.n3, c.n4, c.n5, c.n6, c.n7, c.retries, c.first_at,
       c.recent + coalesce((SELECT sum(t.n_done) FROM pawl.throughput t
                            WHERE t.class = c.class AND t.slot >= $1::bigint), 0)::bigint
FROM (SELECT class, min(queue) AS queue, min(kind) AS kind, sum(n_blocked)::bigint AS n0,
             sum(n_queued)::bigint AS n1, sum(n_waiting)::bigint AS n2, sum(n_running)::bigint AS n3,
             sum(n_done)::bigint AS n4, sum(n_skipped)::bigint AS n5, sum(n_failed)::bigint AS n6,
             sum(n_cancelled)::bigint AS n7, sum(retries)::bigint AS retries,
             min(first_at) AS first_at, sum(recent)::bigint AS recent
      FROM (SELECT id AS class, queue, kind, n_blocked, n_queued, n_waiting, n_running, n_done,
                   n_skipped, n_failed, n_cancelled, n_retries AS retries, first_at,
                   0::bigint AS recent
            FROM pawl.class
            UNION ALL
            SELECT class, min(queue), min(kind), sum(n_blocked), sum(n_queued), sum(n_waiting),
                   sum(n_running), sum(n_done), sum(n_skipped), sum(n_failed), sum(n_cancelled),
                   sum(e_retried), min(first_at),
                   sum(CASE WHEN at / 10000000 >= $1::bigint THEN e_done ELSE 0 END)
            FROM pawl.delta GROUP BY class) s
      GROUP BY class) c
ORDER BY c.queue, c.kind;
-- name: status_sessions
SELECT id, uid, name, host, pools, filter, pid, slots, running, started_at, renewed_at, lease_until,
       command::int, lease_until > pawl.now_us(), preflight
FROM pawl.session WHERE ended_at IS NULL ORDER BY id;
-- name: status_poison
SELECT count(*) FROM pawl.poison;
-- name: metric_sum
SELECT name, sum(value)::bigint FROM pawl.metric GROUP BY name;

-- The report: $1 since, $2 queue or null.
-- name: report_slots
SELECT slot, sum(done)::bigint, sum(skipped)::bigint, sum(failed)::bigint, sum(retried)::bigint,
       sum(lost)::bigint, sum(backoff_us)::bigint, sum(retry_after_us)::bigint
FROM (SELECT t.slot, t.n_done AS done, t.n_skipped AS skipped, t.n_failed AS failed,
             t.n_retried AS retried, t.n_lost AS lost, t.backoff_us, t.retry_after_us
      FROM pawl.class c JOIN pawl.throughput t ON t.class = c.id AND t.slot >= $1::bigint / 10000000
      WHERE $2::text IS NULL OR c.queue = $2::text
      UNION ALL
      SELECT at / 10000000, e_done, e_skipped, e_failed, e_retried, e_lost, backoff_us,
             retry_after_us
      FROM pawl.delta
      WHERE at / 10000000 >= $1::bigint / 10000000 AND ($2::text IS NULL OR queue = $2::text)
        AND (e_done | e_skipped | e_failed | e_retried | e_lost) <> 0) s
GROUP BY slot ORDER BY slot;
-- name: report_errors
SELECT g.fingerprint, g.class, g.n, g.sample,
       (SELECT a.error FROM pawl.settled j JOIN pawl.attempt a ON a.job = j.id AND a.fence = j.fence
        WHERE j.id = g.sample)
FROM (SELECT a.fingerprint, (max(ARRAY[newest.id, a.class]))[2]::int AS class, count(*) AS n,
             max(newest.id) AS sample
      FROM (SELECT id, fence FROM pawl.settled
            WHERE state = 6 AND finished_at >= $1::bigint
            ORDER BY finished_at DESC, id DESC LIMIT 100000) newest
           JOIN pawl.attempt a ON a.job = newest.id AND a.fence = newest.fence
      WHERE @in_queue
      GROUP BY a.fingerprint ORDER BY n DESC, a.fingerprint NULLS FIRST LIMIT $3::bigint) g
ORDER BY g.n DESC, g.fingerprint NULLS FIRST;
-- name: report_slowest
SELECT i.id, b.queue, b.kind, b.key, i.took
FROM (SELECT newest.id, newest.finished_at, newest.finished_at - newest.claimed_at AS took
      FROM (SELECT id, finished_at, claimed_at FROM pawl.settled
            WHERE state = 4 AND finished_at >= $1::bigint
            ORDER BY finished_at DESC, id DESC LIMIT 100000) newest
      WHERE @in_queue
      ORDER BY took DESC, newest.finished_at DESC, newest.id DESC LIMIT 5) i
     JOIN pawl.body b ON b.id = i.id
ORDER BY i.took DESC, i.finished_at DESC, i.id DESC;
-- name: report_sessions
SELECT count(*), coalesce(sum(lost::int), 0)::bigint FROM pawl.session
WHERE ended_at IS NOT NULL AND ended_at >= $1::bigint;
-- name: report_cancelled
SELECT count(*)
FROM (SELECT id FROM pawl.settled WHERE state = 7 AND finished_at >= $1::bigint
      ORDER BY finished_at DESC, id DESC LIMIT 100000) newest
WHERE @in_queue;
