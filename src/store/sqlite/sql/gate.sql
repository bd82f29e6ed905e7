-- Limits, gates, permits, parked lanes, locks.

-- define: state
wake_at, tat, interval_us, cut_at, raised_at, held_until, held_at, held_n, held_asked,
       breaker, since, until, failures, opens, epoch, probe_job, probe_fence, window_at,
       window_calls, window_failures, pace_us

-- name: limits_held
SELECT id, text FROM limits WHERE text IS NOT NULL ORDER BY id;
-- name: data_version
PRAGMA data_version;
-- name: policy_next
UPDATE meta SET value = value + 1 WHERE key = 'policy';
-- name: gates_look_anew
UPDATE gate INDEXED BY gate_wake SET wake_at = 0 WHERE wake_at IS NOT NULL;

-- name: gate_by_id
SELECT id, @state
FROM gate WHERE id = ?1;
-- name: gate_counted
SELECT id, @state,
       (SELECT count(*) FROM permit WHERE permit.gate = ?1)
FROM gate WHERE id = ?1;
-- name: gate_by_value
SELECT id, @state
FROM gate WHERE limit_id = ?1 AND value = ?2;
-- name: gate_insert
INSERT INTO gate (limit_id, value) VALUES (?1, ?2);
-- name: gate_write
UPDATE gate SET wake_at = ?2, tat = ?3, interval_us = ?4, cut_at = ?5, raised_at = ?6,
    held_until = ?7, held_at = ?8, held_n = ?9, held_asked = ?10, breaker = ?11, since = ?12,
    until = ?13, failures = ?14, opens = ?15, epoch = ?16, probe_job = ?17, probe_fence = ?18,
    window_at = ?19, window_calls = ?20, window_failures = ?21, pace_us = ?22
WHERE id = ?1;
-- name: gate_why
UPDATE gate SET why = ?2 WHERE id = ?1;
-- name: gates_due
SELECT id, limit_id, value FROM gate INDEXED BY gate_wake
WHERE wake_at IS NOT NULL AND wake_at <= ?1 ORDER BY wake_at LIMIT ?2;
-- name: gate_next
SELECT wake_at FROM gate INDEXED BY gate_wake
WHERE wake_at IS NOT NULL AND wake_at < 9223372036854775807 ORDER BY wake_at LIMIT 1;
-- name: gate_awake
UPDATE gate SET wake_at = NULL WHERE id = ?1;

-- name: permit_count
SELECT count(*) FROM permit WHERE gate = ?1;
-- name: permit_has
SELECT 1 FROM permit WHERE gate = ?1 AND job = ?2;
-- name: permit_insert
INSERT INTO permit (gate, job) VALUES (?1, ?2) ON CONFLICT DO NOTHING;
-- name: permits_insert
INSERT INTO permit (gate, job) VALUES {16: (?, ?)};
-- name: permit_delete
DELETE FROM permit WHERE gate = ?1 AND job = ?2;
-- name: permits_delete
DELETE FROM permit WHERE gate = ?1 AND job BETWEEN ?2 AND ?3;

-- Hosts beside its lane's that a running job asks.
-- name: admitted_any
SELECT 1 FROM admitted LIMIT 1;
-- name: admitted_between
SELECT 1 FROM admitted WHERE job BETWEEN ?1 AND ?2 LIMIT 1;
-- name: admitted_of
SELECT host, at FROM admitted WHERE job = ?1 ORDER BY host;
-- name: admitted_all
SELECT j.lane, j.id, admitted.host FROM admitted CROSS JOIN job j ON j.id = admitted.job
ORDER BY admitted.job, admitted.host;
-- name: admitted_insert
INSERT INTO admitted (job, host, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
-- name: admitted_delete
DELETE FROM admitted WHERE job = ?1;

-- name: lane_park
UPDATE lane SET parked = ?2 WHERE id = ?1;
-- name: lanes_unpark
UPDATE lane SET parked = NULL WHERE id IN
    (SELECT id FROM lane INDEXED BY lane_parked WHERE parked = ?1
     ORDER BY head_priority DESC, turn, head_id LIMIT ?2) RETURNING class;
-- name: lane_parked_any
SELECT 1 FROM lane INDEXED BY lane_parked WHERE parked = ?1 LIMIT 1;

-- name: lock_now
SELECT id, lane, priority, state FROM job INDEXED BY job_lock
WHERE lock = ?1 AND lock IS NOT NULL AND state IN (1, 3);
-- name: lock_best
SELECT id, lane, priority FROM job INDEXED BY job_held
WHERE state = -1 AND lock = ?1 ORDER BY priority DESC, id LIMIT 1;
-- name: lock_move
UPDATE job SET state = ?2 WHERE id = ?1;
