-- The status view: counters, never a count over history.

-- name: status_classes
SELECT q.name, c.kind, c.paused, c.n_blocked, c.n_queued, c.n_waiting, c.n_running, c.n_done,
       c.n_skipped, c.n_failed, c.n_cancelled, c.n_retries, c.first_at,
       (SELECT sum(t.n_done) FROM throughput t WHERE t.class = c.id AND t.slot >= ?1)
FROM class c CROSS JOIN queue q ON q.id = c.queue ORDER BY q.name, c.kind;
-- name: status_queues
SELECT name FROM queue q WHERE paused_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM class c WHERE c.queue = q.id);
-- name: status_running
SELECT r.id, r.priority, r.state, r.attempt, r.transient, r.lost, r.fence, r.worker, r.claimed_at,
       r.lease_until, r.available_at, r.finished_at, r.reason, r.cancel, r.progress, r.lock, r.key,
       r.created_at, r.max_attempts, r.timeout_us, r.parent, r.queue, r.kind, r.host, r.class,
       r.error, r.exit_code
FROM (SELECT id FROM job INDEXED BY job_running WHERE state = 3 LIMIT ?1) i
     CROSS JOIN job_row r ON r.id = i.id ORDER BY r.claimed_at, r.id;
-- name: status_last
SELECT r.id, r.priority, r.state, r.attempt, r.transient, r.lost, r.fence, r.worker, r.claimed_at,
       r.lease_until, r.available_at, r.finished_at, r.reason, r.cancel, r.progress, r.lock, r.key,
       r.created_at, r.max_attempts, r.timeout_us, r.parent, r.queue, r.kind, r.host, r.class,
       r.error, r.exit_code
FROM (SELECT id, finished_at AS at FROM job INDEXED BY job_ended
      WHERE state = ?1 AND state >= 4 ORDER BY finished_at DESC LIMIT 5) i
     CROSS JOIN job_row r ON r.id = i.id ORDER BY i.at DESC, r.id DESC;
-- name: status_poison
SELECT count(*) FROM poison;
-- name: throughput_add
INSERT INTO throughput (class, slot, n_done, n_failed) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (class, slot) DO UPDATE SET n_done = n_done + excluded.n_done,
                                        n_failed = n_failed + excluded.n_failed;
