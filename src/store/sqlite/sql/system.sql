-- Transactions, the clock, and what the handle keeps of itself.

-- name: begin
BEGIN IMMEDIATE;
-- name: commit
COMMIT;
-- name: savepoint
SAVEPOINT op;
-- name: release
RELEASE op;
-- name: begin_read
BEGIN;

-- name: meta_get
SELECT value FROM meta WHERE key = ?1;
-- name: meta_set
INSERT INTO meta (key, value) VALUES (?1, ?2)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
-- name: last_event_at
SELECT at FROM event ORDER BY id DESC LIMIT 1;
-- name: void_sessions
UPDATE session SET lease_until = 0 WHERE ended_at IS NULL;

-- name: queue_find
SELECT id, paused_at IS NOT NULL FROM queue WHERE name = ?1;
-- name: queue_insert
INSERT INTO queue (name) VALUES (?1);
-- name: class_find
SELECT id FROM class WHERE queue = ?1 AND kind = ?2;
-- name: class_insert
INSERT INTO class (queue, kind, paused, first_at)
VALUES (?1, ?2, (SELECT paused_at IS NOT NULL FROM queue WHERE id = ?1), ?3);
-- name: lane_find
SELECT id FROM lane WHERE class = ?1 AND host = ?2;
-- name: lane_insert
INSERT INTO lane (class, host) VALUES (?1, ?2);
-- name: lane_by_id
SELECT l.class, l.host, c.kind, c.queue, q.name
FROM lane l JOIN class c ON c.id = l.class JOIN queue q ON q.id = c.queue WHERE l.id = ?1;

-- name: class_by_id
SELECT c.kind, c.queue, q.name FROM class c JOIN queue q ON q.id = c.queue WHERE c.id = ?1;

-- name: lane_head
SELECT head_priority, head_id FROM lane WHERE id = ?1;
-- name: lane_set_head
UPDATE lane SET head_priority = ?2, head_id = ?3 WHERE id = ?1;
-- name: lane_set_turn
UPDATE lane SET head_priority = ?2, head_id = ?3, turn = ?4 WHERE id = ?1;
-- name: lane_best
SELECT priority, id FROM job INDEXED BY job_ready
WHERE state = 1 AND lane = ?1 ORDER BY priority DESC, id LIMIT 1;
-- name: class_best
SELECT head_priority, head_id FROM lane INDEXED BY lane_ready
WHERE class = ?1 AND head_id IS NOT NULL AND parked IS NULL
ORDER BY head_priority DESC, turn, head_id LIMIT 1;
-- name: class_update
UPDATE class SET head_priority = ?2, head_id = ?3,
    n_blocked = n_blocked + ?4, n_queued = n_queued + ?5, n_waiting = n_waiting + ?6,
    n_running = n_running + ?7, n_done = n_done + ?8, n_skipped = n_skipped + ?9,
    n_failed = n_failed + ?10, n_cancelled = n_cancelled + ?11, n_retries = n_retries + ?12
WHERE id = ?1;
-- name: class_count
UPDATE class SET
    n_blocked = n_blocked + ?2, n_queued = n_queued + ?3, n_waiting = n_waiting + ?4,
    n_running = n_running + ?5, n_done = n_done + ?6, n_skipped = n_skipped + ?7,
    n_failed = n_failed + ?8, n_cancelled = n_cancelled + ?9, n_retries = n_retries + ?10
WHERE id = ?1;

-- name: events_insert
INSERT INTO event (at, type, job, fence, session) VALUES {16: (?, ?, ?, ?, ?)};
-- name: event_insert
INSERT INTO event (at, type, job, fence, session, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
