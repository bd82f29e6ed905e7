-- The status view: counters, never a count over history.

-- name: status_classes
SELECT q.name, c.kind, c.paused, c.n_blocked, c.n_queued, c.n_waiting, c.n_running, c.n_done,
       c.n_skipped, c.n_failed, c.n_cancelled, c.n_retries, c.first_at,
       (SELECT sum(t.n_done) FROM throughput t WHERE t.class = c.id AND t.slot >= ?1)
FROM class c CROSS JOIN queue q ON q.id = c.queue ORDER BY q.name, c.kind;
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
INSERT INTO throughput VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (class, slot) DO UPDATE SET
    n_done = n_done + excluded.n_done, n_skipped = n_skipped + excluded.n_skipped,
    n_failed = n_failed + excluded.n_failed, n_retried = n_retried + excluded.n_retried,
    n_lost = n_lost + excluded.n_lost, backoff_us = backoff_us + excluded.backoff_us,
    retry_after_us = retry_after_us + excluded.retry_after_us;

-- The report: ?1 since, ?2 queue or null.
-- name: report_slots
SELECT t.slot, sum(t.n_done), sum(t.n_skipped), sum(t.n_failed), sum(t.n_retried), sum(t.n_lost),
       sum(t.backoff_us), sum(t.retry_after_us)
FROM class c CROSS JOIN throughput t ON t.class = c.id AND t.slot >= ?1
WHERE ?2 IS NULL OR c.queue = (SELECT id FROM queue WHERE name = ?2)
GROUP BY t.slot ORDER BY t.slot;
-- name: report_errors
SELECT a.fingerprint, a.class, count(*), max(newest.id)
FROM (SELECT id, fence, lane FROM job INDEXED BY job_ended
      WHERE state = 6 AND state >= 4 AND finished_at >= ?1
      ORDER BY finished_at DESC LIMIT 100000) newest
     CROSS JOIN attempt a ON a.job = newest.id AND a.fence = newest.fence
     CROSS JOIN lane l ON l.id = newest.lane CROSS JOIN class c ON c.id = l.class
WHERE ?2 IS NULL OR c.queue = (SELECT id FROM queue WHERE name = ?2)
GROUP BY a.fingerprint ORDER BY count(*) DESC, a.fingerprint LIMIT ?3;
-- name: report_slowest
SELECT r.id, r.queue, r.kind, r.key, r.finished_at - r.claimed_at
FROM (SELECT newest.id, newest.finished_at - newest.claimed_at AS took
      FROM (SELECT id, lane, finished_at, claimed_at FROM job INDEXED BY job_ended
            WHERE state = 4 AND state >= 4 AND finished_at >= ?1
            ORDER BY finished_at DESC LIMIT 100000) newest
           CROSS JOIN lane l ON l.id = newest.lane CROSS JOIN class c ON c.id = l.class
      WHERE ?2 IS NULL OR c.queue = (SELECT id FROM queue WHERE name = ?2)
      ORDER BY took DESC LIMIT 5) i CROSS JOIN job_row r ON r.id = i.id ORDER BY i.took DESC;
-- name: report_sessions
SELECT count(*), coalesce(sum(lost), 0) FROM session INDEXED BY session_ended
WHERE ended_at IS NOT NULL AND ended_at >= ?1;
-- name: report_cancelled
SELECT count(*)
FROM (SELECT lane FROM job INDEXED BY job_ended WHERE state = 7 AND state >= 4 AND finished_at >= ?1
      ORDER BY finished_at DESC LIMIT 100000) newest
WHERE ?2 IS NULL OR newest.lane IN (SELECT l.id FROM queue q CROSS JOIN class c ON c.queue = q.id
    CROSS JOIN lane l ON l.class = c.id WHERE q.name = ?2);
