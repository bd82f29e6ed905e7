-- Taking jobs. The order over lanes is a merge in claim.c over exact heads.

-- name: due_waiting
SELECT id, lane, priority, lock FROM job INDEXED BY job_waiting
WHERE state = 2 AND available_at <= ?1 ORDER BY available_at LIMIT ?2;
-- name: due_wall
SELECT j.id, j.lane, j.priority, j.lock
FROM (SELECT job FROM due WHERE at_wall <= ?1 ORDER BY at_wall, job LIMIT ?2) d
     CROSS JOIN job j ON j.id = d.job;
-- name: next_waiting
SELECT available_at FROM job INDEXED BY job_waiting
WHERE state = 2 AND available_at > 0 ORDER BY available_at LIMIT 1;
-- name: next_due
SELECT at_wall FROM due ORDER BY at_wall LIMIT 1;
-- name: promote
UPDATE job SET state = ?3, available_at = ?2, reason = 0 WHERE id = ?1;

-- name: classes_ready
SELECT id, head_priority, head_id FROM class INDEXED BY class_ready
WHERE head_id IS NOT NULL AND paused = 0 ORDER BY head_priority DESC, head_id;
-- name: lane_next_same
SELECT head_id, id, turn FROM lane INDEXED BY lane_ready
WHERE class = ?1 AND head_id IS NOT NULL AND parked IS NULL AND head_priority = ?2
      AND (turn, head_id) > (?4, ?3) ORDER BY turn, head_id;
-- name: lane_next_lower
SELECT head_priority, head_id, id, turn FROM lane INDEXED BY lane_ready
WHERE class = ?1 AND head_id IS NOT NULL AND parked IS NULL AND head_priority < ?2
ORDER BY head_priority DESC, turn, head_id LIMIT 1;
-- name: job_next_same
SELECT id FROM job INDEXED BY job_ready
WHERE state = 1 AND lane = ?1 AND priority = ?2 AND id > ?3 ORDER BY id;
-- name: job_next_lower
SELECT priority, id FROM job INDEXED BY job_ready
WHERE state = 1 AND lane = ?1 AND priority < ?2 ORDER BY priority DESC, id LIMIT 1;

-- What was picked from a lane at one priority is a gapless stretch of its ready jobs, so one
-- statement reads it and one takes it.
-- name: claim_rows
SELECT j.priority - j.aged, j.attempt, j.transient, j.lost, j.fence, j.available_at,
       b.key, b.payload, b.created_at, b.max_attempts, b.timeout_us, j.id, j.lock, j.lane, j.priority
FROM job j INDEXED BY job_ready CROSS JOIN body b ON b.id = j.id
WHERE j.state = 1 AND j.lane = ?3 AND j.priority = ?4 AND j.id BETWEEN ?1 AND ?2 ORDER BY j.id;
-- name: take_rows
UPDATE job INDEXED BY job_ready
SET state = 3, attempt = attempt + 1, fence = fence + 1, owner = ?5, claimed_at = ?6
WHERE state = 1 AND lane = ?3 AND priority = ?4 AND id BETWEEN ?1 AND ?2;
-- The same for consecutive ids, often those of many lanes, and for a single one.
-- name: claim_range
SELECT j.priority - j.aged, j.attempt, j.transient, j.lost, j.fence, j.available_at,
       b.key, b.payload, b.created_at, b.max_attempts, b.timeout_us, j.id, j.lock, j.lane, j.priority
FROM job j NOT INDEXED CROSS JOIN body b ON b.id = j.id
WHERE j.id BETWEEN ?1 AND ?2 AND j.state = 1 ORDER BY j.id;
-- name: take_range
UPDATE job NOT INDEXED
SET state = 3, attempt = attempt + 1, fence = fence + 1, owner = ?5, claimed_at = ?6
WHERE id BETWEEN ?1 AND ?2 AND state = 1;
-- name: claim_only
SELECT j.lane, c.paused, j.priority FROM job j JOIN lane l ON l.id = j.lane JOIN class c ON c.id = l.class
WHERE j.id = ?1 AND j.state = 1;
-- name: session_lease
SELECT lease_until, command FROM session WHERE id = ?1 AND ended_at IS NULL;
-- name: held
SELECT id FROM job INDEXED BY job_running WHERE state = 3 AND owner = ?1;
-- name: held_row
SELECT j.priority - j.aged, j.attempt, j.transient, j.lost, j.fence, j.available_at,
       b.key, b.payload, b.created_at, b.max_attempts, b.timeout_us, j.lane, j.claimed_at
FROM job j CROSS JOIN body b WHERE j.id = ?1 AND b.id = ?1;
