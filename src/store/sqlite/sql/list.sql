-- Looking at jobs. The ids come from the index that fits the state asked for; the filters are the
-- same everywhere: ?1 queue, ?2 kind, ?3 host, ?4 states, ?5 since, ?6 error, ?7 after, ?8 limit,
-- ?9 and ?10 the error's fingerprint, ?11 the ended state.

-- define: columns
id, priority, state, attempt, transient, lost, fence, worker, claimed_at, lease_until,
       available_at, finished_at, reason, cancel, progress, lock, key, created_at, max_attempts,
       timeout_us, parent, queue, kind, host, class, error, exit_code, payload, result, fingerprint

-- define: filters
(?1 IS NULL OR queue = ?1) AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR host = ?3)
  AND (?4 = 0 OR (?4 >> state) & 1) AND (?5 IS NULL OR created_at >= ?5)
  AND (?6 IS NULL OR instr(error, ?6) > 0) AND (?10 = 0 OR fingerprint BETWEEN ?9 AND ?10)

-- name: job_get
SELECT @columns
FROM job_row WHERE id = ?1;
-- name: list_by_id
SELECT @columns
FROM job_row WHERE id > ?7 AND @filters ORDER BY id LIMIT ?8;
-- name: list_queued
SELECT @columns
FROM (SELECT id AS job_id FROM job INDEXED BY job_ready WHERE state = 1 AND id > ?7
      UNION ALL SELECT id FROM job INDEXED BY job_held WHERE state = -1 AND id > ?7) i
     CROSS JOIN job_row r ON r.id = i.job_id
WHERE @filters ORDER BY i.job_id LIMIT ?8;
-- name: list_waiting
SELECT @columns
FROM (SELECT id AS job_id FROM job INDEXED BY job_waiting WHERE state = 2 AND id > ?7) i CROSS JOIN job_row r ON r.id = i.job_id
WHERE @filters ORDER BY i.job_id LIMIT ?8;
-- name: list_running
SELECT @columns
FROM (SELECT id AS job_id FROM job INDEXED BY job_running WHERE state = 3 AND id > ?7) i CROSS JOIN job_row r ON r.id = i.job_id
WHERE @filters ORDER BY i.job_id LIMIT ?8;
-- name: list_ended
SELECT @columns
FROM (SELECT id AS job_id FROM job INDEXED BY job_ended
      WHERE state = ?11 AND state >= 4 AND id > ?7) i CROSS JOIN job_row r ON r.id = i.job_id
WHERE @filters ORDER BY i.job_id LIMIT ?8;
-- name: lane_any
SELECT 1 FROM lane l JOIN class c ON c.id = l.class JOIN queue q ON q.id = c.queue
WHERE (?1 IS NULL OR q.name = ?1) AND (?2 IS NULL OR c.kind = ?2) AND (?3 IS NULL OR l.host = ?3)
LIMIT 1;
-- name: key_lookup
SELECT id FROM job_key WHERE digest = ?1 AND expires IS NULL;
-- name: queue_names
SELECT name FROM queue ORDER BY id;
-- name: attempts
SELECT a.attempt, a.fence, s.name, a.started_at, a.finished_at, a.outcome, a.class, a.error,
       a.exit_code, a.log_bytes
FROM attempt a LEFT JOIN session s ON s.id = a.session WHERE a.job = ?1 ORDER BY a.fence;

-- name: events
SELECT e.id, e.at, e.type, e.job, e.fence, q.name, c.kind, b.key, s.name, e.detail
FROM event e LEFT JOIN session s ON s.id = e.session LEFT JOIN body b ON b.id = e.job
     LEFT JOIN lane l ON l.id = b.lane LEFT JOIN class c ON c.id = l.class
     LEFT JOIN queue q ON q.id = c.queue
WHERE e.id > ?1 AND e.id <= ?2 AND (?3 = 0 OR e.job = ?3) AND (?4 = 0 OR (?4 >> e.type) & 1)
  AND (?5 IS NULL OR q.name = ?5) ORDER BY e.id LIMIT ?6;
-- The same for types out of EVENTS_RARE: the term on e.type is that of the index, word by word.
-- name: events_rare
SELECT e.id, e.at, e.type, e.job, e.fence, q.name, c.kind, b.key, s.name, e.detail
FROM event e INDEXED BY event_rare LEFT JOIN session s ON s.id = e.session
     LEFT JOIN body b ON b.id = e.job LEFT JOIN lane l ON l.id = b.lane
     LEFT JOIN class c ON c.id = l.class LEFT JOIN queue q ON q.id = c.queue
WHERE 2143420960 >> e.type & 1
  AND e.id > ?1 AND e.id <= ?2 AND (?3 = 0 OR e.job = ?3) AND (?4 >> e.type) & 1
  AND (?5 IS NULL OR q.name = ?5) ORDER BY e.id LIMIT ?6;
-- name: events_from
SELECT min(id) FROM
    (SELECT e.id FROM event e LEFT JOIN body b ON b.id = e.job LEFT JOIN lane l ON l.id = b.lane
          LEFT JOIN class c ON c.id = l.class LEFT JOIN queue q ON q.id = c.queue
     WHERE e.id > ?1 AND e.id <= ?2 AND (?3 = 0 OR e.job = ?3) AND (?4 = 0 OR (?4 >> e.type) & 1)
       AND (?5 IS NULL OR q.name = ?5) ORDER BY e.id DESC LIMIT ?6);
-- name: job_created
SELECT created_at FROM body WHERE id = ?1;
-- name: event_last
SELECT max(id) FROM event;
-- name: event_first
SELECT min(id) FROM event;
-- name: event_at
SELECT id, at FROM event WHERE id >= ?1 ORDER BY id LIMIT 1;

-- name: retry_job
UPDATE job SET state = ?4, available_at = ?2, attempt = ?3, transient = 0, lost = 0, reason = 0,
    finished_at = NULL, claimed_at = NULL, priority = priority - aged, aged = 0
WHERE id = ?1 AND state >= 4;
-- name: grant_attempts
UPDATE body SET max_attempts = ?2 WHERE id = ?1;
-- name: cancel_job
UPDATE job SET state = 7, finished_at = ?2, reason = 0,
    available_at = ifnull(available_at, (SELECT d.at_wall FROM due d WHERE d.job = ?1))
WHERE id = ?1 AND state IN (-1, 0, 1, 2);
-- name: cancel_running
INSERT INTO cancel_ask (job, fence, session)
SELECT id, fence, owner FROM job WHERE id = ?1 AND state = 3
ON CONFLICT (job) DO UPDATE SET fence = excluded.fence, session = excluded.session
WHERE fence <> excluded.fence;
-- name: ready_now
UPDATE job SET state = ?3, available_at = ?2, reason = 0 WHERE id = ?1 AND state = 2;
-- name: revoke
INSERT INTO revoked (session, job, fence) SELECT owner, id, fence FROM job WHERE id = ?1 AND state = 3
ON CONFLICT DO NOTHING;
-- name: set_priority
UPDATE job SET priority = ?2, aged = 0 WHERE id = ?1;
-- name: set_time
UPDATE job SET state = ?2, available_at = ?3, reason = ?4, priority = priority - aged, aged = 0
WHERE id = ?1;
-- name: set_body
UPDATE body SET payload = ifnull(?2, payload), max_attempts = ifnull(?3, max_attempts),
    timeout_us = ifnull(?4, timeout_us) WHERE id = ?1;
-- name: act_row
SELECT j.lane, j.priority - j.aged, j.state, j.attempt, j.fence, j.finished_at, b.key,
       j.available_at IS NULL, j.owner, j.lock
FROM job j CROSS JOIN body b ON b.id = j.id WHERE j.id = ?1;
-- name: prune_job
DELETE FROM job WHERE id = ?1 AND state >= 4;
-- name: prune_body
DELETE FROM body WHERE id = ?1;
-- name: prune_attempts
DELETE FROM attempt WHERE job = ?1 RETURNING fence, log_bytes;
-- name: key_expire
UPDATE job_key SET expires = ?2 WHERE digest = ?1;
-- name: keys_drop
DELETE FROM job_key WHERE digest IN
    (SELECT digest FROM job_key INDEXED BY job_key_expires
     WHERE expires IS NOT NULL AND expires <= ?1 LIMIT ?2);
-- name: events_drop
DELETE FROM event WHERE id < (SELECT max(id) FROM event) AND id IN
    (SELECT id FROM (SELECT id, at FROM event ORDER BY id LIMIT ?2) WHERE at < ?1);
-- name: throughput_drop
DELETE FROM throughput WHERE slot < ?1;
-- name: vacuum_some
PRAGMA incremental_vacuum(2000);
