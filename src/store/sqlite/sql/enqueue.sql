-- Adding jobs.

-- name: body_insert
INSERT INTO body (id, lane, key, payload, created_at, max_attempts, timeout_us, parent, lock)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);
-- name: job_insert
INSERT INTO job (id, lane, priority, state, available_at, reason, lock)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
-- name: jobs_insert
INSERT INTO job (id, lane, priority, state, available_at, reason)
VALUES {16: (?, ?, ?, ?, ?, ?)};
-- name: due_insert
INSERT INTO due (at_wall, job) VALUES (?1, ?2);
-- name: due_delete
DELETE FROM due WHERE at_wall = (SELECT d.at_wall FROM due d WHERE d.job = ?1) AND job = ?1;
-- name: key_insert
INSERT INTO job_key (digest, id) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING;
-- name: key_find
SELECT id, expires FROM job_key WHERE digest = ?1;
-- name: key_take
UPDATE job_key SET id = ?2, expires = NULL WHERE digest = ?1;
-- name: body_replace
UPDATE body SET lane = ?2, payload = ?3, max_attempts = ?4, timeout_us = ?5, lock = ?6 WHERE id = ?1;
-- name: job_replace
UPDATE job SET lane = ?2, priority = ?3, state = ?4, available_at = ?5, reason = ?6,
    attempt = 0, transient = 0, lost = 0, finished_at = NULL, owner = NULL, claimed_at = NULL,
    lock = ?7, aged = 0
WHERE id = ?1;
-- name: result_delete
DELETE FROM result WHERE job = ?1;
-- name: job_place
SELECT lane, priority, state, fence, available_at IS NULL, lock FROM job WHERE id = ?1;
-- name: poison_delete
DELETE FROM poison WHERE job = ?1;
