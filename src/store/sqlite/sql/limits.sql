-- Limits, gates, locks and duties as operators and workers ask for them; the claim's own statements are in claim.sql.

-- name: limits_all
SELECT id, name, text, config, by_operator, changed_at FROM limits ORDER BY name;
-- name: limit_find
SELECT id, text, config, by_operator FROM limits WHERE name = ?1;
-- name: limit_put
INSERT INTO limits (name, text, config, by_operator, changed_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET text = excluded.text, config = excluded.config,
    by_operator = excluded.by_operator, changed_at = excluded.changed_at;
-- name: limit_delete
DELETE FROM limits WHERE id = ?1;
-- name: limit_count
SELECT count(*) FROM limits WHERE text IS NOT NULL;

-- After a change: permits of running jobs are made anew; what belongs to a limit that is gone goes.
-- name: limit_unpark
UPDATE lane SET parked = NULL WHERE parked IN (SELECT id FROM gate WHERE limit_id = ?1) RETURNING class;
-- name: limit_gates_drop
DELETE FROM gate WHERE limit_id = ?1;
-- name: permits_drop_all
DELETE FROM permit;
-- name: turns_drop
UPDATE lane SET turn = 0 WHERE turn <> 0;
-- name: classes_best
UPDATE class SET (head_priority, head_id) =
    (SELECT l.head_priority, l.head_id FROM lane l INDEXED BY lane_ready
     WHERE l.class = class.id AND l.head_id IS NOT NULL AND l.parked IS NULL
     ORDER BY l.head_priority DESC, l.turn, l.head_id LIMIT 1);
-- name: running_lanes
SELECT lane, id FROM job INDEXED BY job_running WHERE state = 3 ORDER BY lane;

-- name: gates_list
SELECT g.id, l.name, g.value, l.text, g.why, g.tat, g.interval_us, g.cut_at, g.raised_at, g.held_until, g.held_at,
       g.held_n, g.held_asked, g.breaker, g.since, g.until, g.failures, g.opens, g.epoch,
       g.probe_job, g.probe_fence, g.window_at, g.window_calls, g.window_failures, g.pace_us
FROM limits l CROSS JOIN gate g ON g.limit_id = l.id
WHERE l.text IS NOT NULL AND (?1 IS NULL OR l.name = ?1) AND (?2 IS NULL OR g.value = ?2)
ORDER BY l.name, g.value;
-- name: gate_parked
SELECT count(*) FROM lane INDEXED BY lane_parked WHERE parked = ?1;

-- Each lock that is held or wanted has one job that is ready or running.
-- name: lock_list
SELECT b.lock, j.id, j.state, j.fence, s.name, j.claimed_at, s.lease_until, j.lock
FROM job j INDEXED BY job_lock CROSS JOIN body b ON b.id = j.id
     LEFT JOIN session s ON s.id = j.owner AND j.state = 3
WHERE j.lock IS NOT NULL AND j.state IN (1, 3) ORDER BY b.lock;
-- name: lock_one
SELECT b.lock, j.id, j.state, j.fence, s.name, j.claimed_at, s.lease_until, j.lock
FROM job j INDEXED BY job_lock CROSS JOIN body b ON b.id = j.id
     LEFT JOIN session s ON s.id = j.owner AND j.state = 3
WHERE j.lock = ?1 AND j.lock IS NOT NULL AND j.state IN (1, 3) AND b.lock = ?2;
-- name: lock_waiting
SELECT count(*) FROM job INDEXED BY job_held WHERE state = -1 AND lock = ?1;

-- name: duty_find
SELECT session, until, done FROM duty WHERE name = ?1;
-- name: duty_put
INSERT INTO duty (name, session, until, done) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET session = excluded.session, until = excluded.until,
    done = excluded.done;

-- History of ended jobs, in the order in which they ended.
-- name: history_jobs
SELECT id, finished_at FROM job INDEXED BY job_ended
WHERE state = ?1 AND state >= 4 AND (finished_at, id) > (?2, ?3) AND finished_at < ?4
ORDER BY finished_at, id LIMIT ?5;
-- name: history_attempts
DELETE FROM attempt WHERE job = ?1 AND fence < (SELECT max(a.fence) FROM attempt a WHERE a.job = ?1)
RETURNING fence, log_bytes;

-- Aging: lanes with ready work, the first job of each priority in one, those behind it.
-- name: age_lanes
SELECT id FROM lane WHERE id > ?1 AND head_id IS NOT NULL ORDER BY id LIMIT ?2;
-- name: age_first
SELECT priority, id, available_at, aged FROM job INDEXED BY job_ready
WHERE state = 1 AND lane = ?1 AND priority < ?2 ORDER BY priority DESC, id LIMIT 1;
-- name: age_group
SELECT priority, id, available_at, aged FROM job INDEXED BY job_ready
WHERE state = 1 AND lane = ?1 AND priority = ?2 ORDER BY id LIMIT ?3;
-- name: age_raise
UPDATE job SET priority = ?3, aged = aged + ?2 WHERE id = ?1 AND state = 1 AND priority + ?2 = ?3;
