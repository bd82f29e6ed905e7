-- Sessions, renewals, sweeping.

-- name: session_insert
INSERT INTO session (uid, name, host, pid, started_at, renewed_at, lease_until, slots, pools, filter)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9);
-- name: session_renew
UPDATE session SET lease_until = ?2, renewed_at = ?3, running = ?4,
    preflight = coalesce(?5, preflight)
WHERE id = ?1 AND lease_until > ?3 AND ended_at IS NULL RETURNING command;
-- name: session_end
UPDATE session SET ended_at = ?2, running = 0, lost = ?3 WHERE id = ?1 AND ended_at IS NULL;
-- name: session_cancels
SELECT k.job FROM cancel_ask k CROSS JOIN job j ON j.id = k.job
WHERE k.session = ?1 AND j.fence = k.fence AND j.state = 3;
-- name: revoked_read
SELECT job, fence FROM revoked WHERE session = ?1;
-- name: revoked_drop
DELETE FROM revoked WHERE session = ?1;
-- name: session_one
SELECT uid, lease_until FROM session WHERE id = ?1 AND ended_at IS NULL;
-- name: progress_set
INSERT INTO progress (job, fence, progress)
SELECT id, fence, ?3 FROM job WHERE id = ?1 AND fence = ?2 AND state = 3
ON CONFLICT (job) DO UPDATE SET fence = excluded.fence, progress = excluded.progress;
-- name: metric_set
INSERT INTO metric (session, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (session, name) DO UPDATE SET value = excluded.value;
-- name: metric_fold
INSERT INTO metric (session, name, value) SELECT 0, name, value FROM metric WHERE session = ?1
ON CONFLICT (session, name) DO UPDATE SET value = value + excluded.value;
-- name: metric_drop
DELETE FROM metric WHERE session = ?1;
-- name: metric_sum
SELECT name, sum(value) FROM metric GROUP BY name;

-- name: sessions_live
SELECT id, uid, lease_until FROM session INDEXED BY session_live WHERE ended_at IS NULL ORDER BY id;
-- name: sessions_view
SELECT id, uid, name, host, pools, filter, pid, slots, running, started_at, renewed_at,
       lease_until, command, preflight
FROM session INDEXED BY session_live WHERE ended_at IS NULL ORDER BY id;
-- name: session_ask
UPDATE session SET command = ?2
WHERE ended_at IS NULL AND (?1 IS NULL OR name = ?1 OR uid = ?1) RETURNING id;
-- name: owner_next
SELECT owner FROM job INDEXED BY job_running WHERE state = 3 AND owner > ?1 ORDER BY owner LIMIT 1;
-- name: owner_jobs
SELECT id, fence, lost,
       EXISTS (SELECT 1 FROM cancel_ask k WHERE k.job = job.id AND k.fence = job.fence)
FROM job INDEXED BY job_running WHERE state = 3 AND owner = ?1 LIMIT ?2;
-- name: cancel_sweep
DELETE FROM cancel_ask WHERE NOT EXISTS
    (SELECT 1 FROM job j WHERE j.id = cancel_ask.job AND j.fence = cancel_ask.fence AND j.state = 3);
-- name: progress_sweep
DELETE FROM progress WHERE NOT EXISTS
    (SELECT 1 FROM job j WHERE j.id = progress.job AND j.fence = progress.fence AND j.state = 3);
-- name: session_is_live
SELECT 1 FROM session WHERE id = ?1 AND ended_at IS NULL;

-- name: queue_pause
UPDATE queue SET paused_at = ?2 WHERE id = ?1;
-- name: class_pause
UPDATE class SET paused = ?2 WHERE queue = ?1;
