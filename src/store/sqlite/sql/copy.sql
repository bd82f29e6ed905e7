-- Copying stores (copy.h). copy_read_X: the columns of copy.def for keys above the first parameters, in their order;
-- the last parameter is how many. copy_last_X: the highest key. copy_put_X: one row, all its columns as parameters,
-- then the id of its queue (class, artifact, fetch) or lane (job) and the digest of its lock (job).

-- name: copy_read_session
SELECT id, uid, name, host, pid, started_at, renewed_at, lease_until, ended_at, lost, command, slots,
       running, pools, filter
FROM session WHERE id > ?1 ORDER BY id LIMIT ?2;
-- name: copy_last_session
SELECT id FROM session ORDER BY id DESC LIMIT 1;
-- name: copy_put_session
INSERT INTO session (id, uid, name, host, pid, started_at, renewed_at, lease_until, ended_at, lost,
                     command, slots, running, pools, filter)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING;

-- name: copy_read_class
SELECT q.name, c.kind, c.n_retries, c.first_at FROM class c JOIN queue q ON q.id = c.queue
WHERE (q.name, c.kind) > (?1, ?2) ORDER BY q.name, c.kind LIMIT ?3;
-- name: copy_last_class
SELECT q.name, c.kind FROM class c JOIN queue q ON q.id = c.queue
ORDER BY q.name DESC, c.kind DESC LIMIT 1;
-- name: copy_put_class
INSERT INTO class (queue, kind, n_retries, first_at) SELECT ?5, ?2, ?3, ?4 WHERE ?1 IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: copy_read_pause
SELECT name, paused_at FROM queue WHERE paused_at IS NOT NULL AND name > ?1 ORDER BY name LIMIT ?2;
-- name: copy_last_pause
SELECT name FROM queue WHERE paused_at IS NOT NULL ORDER BY name DESC LIMIT 1;
-- name: copy_put_pause
INSERT INTO queue (name, paused_at) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at;

-- Which limits and order hold; the number of their state is each store's own.
-- name: copy_read_policy
SELECT key, CAST(value AS TEXT) FROM meta
WHERE key IN ('claim_order', 'aging', 'policy_text') AND key > ?1 ORDER BY key LIMIT ?2;
-- name: copy_last_policy
SELECT key FROM meta WHERE key IN ('claim_order', 'aging', 'policy_text') ORDER BY key DESC LIMIT 1;
-- name: copy_put_policy
INSERT INTO meta (key, value)
VALUES (?1, CASE ?1 WHEN 'policy_text' THEN ?2 ELSE CAST(?2 AS INTEGER) END) ON CONFLICT DO NOTHING;

-- name: copy_read_limit
SELECT name, text, config, by_operator, changed_at FROM limits WHERE name > ?1 ORDER BY name LIMIT ?2;
-- name: copy_last_limit
SELECT name FROM limits ORDER BY name DESC LIMIT 1;
-- name: copy_put_limit
INSERT INTO limits (name, text, config, by_operator, changed_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING;

-- name: copy_read_gate
SELECT l.name, g.value, g.tat, g.interval_us, g.cut_at, g.raised_at, g.held_until, g.held_at, g.held_n,
       g.held_asked, g.breaker, g.since, g.until, g.failures, g.opens, g.epoch, g.probe_job,
       g.probe_fence, g.window_at, g.window_calls, g.window_failures, g.why, g.pace_us
FROM limits l JOIN gate g ON g.limit_id = l.id
WHERE (l.name, g.value) > (?1, ?2) ORDER BY l.name, g.value LIMIT ?3;
-- name: copy_last_gate
SELECT l.name, g.value FROM limits l JOIN gate g ON g.limit_id = l.id
ORDER BY l.name DESC, g.value DESC LIMIT 1;
-- name: copy_put_gate
INSERT INTO gate (limit_id, value, tat, interval_us, cut_at, raised_at, held_until, held_at, held_n,
                  held_asked, breaker, since, until, failures, opens, epoch, probe_job, probe_fence,
                  window_at, window_calls, window_failures, why, pace_us)
SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23
FROM limits WHERE name = ?1 ON CONFLICT DO NOTHING;

-- A queued job with a lock arrives as held; the last step finds out whose turn it is.
-- A job that waits for the wall clock (--at) has its time in `due`. Other stores do not tell these from those
-- that wait a given time (--in): what waits for a time that was asked for waits for the wall clock here.
-- name: copy_read_job
SELECT j.id, q.name, c.kind, l.host, b.key, b.payload, b.created_at, b.max_attempts, b.timeout_us,
       b.parent, b.group_id, b.trace, b.expires_at, b.lock, j.priority - j.aged,
       iif(j.state = -1, 1, j.state), j.attempt,
       j.transient, j.lost, j.fence, j.owner, j.claimed_at,
       coalesce(j.available_at, (SELECT d.at_wall FROM due d WHERE d.job = j.id), 0), j.finished_at,
       j.reason
FROM job j CROSS JOIN body b ON b.id = j.id CROSS JOIN lane l ON l.id = j.lane
     CROSS JOIN class c ON c.id = l.class CROSS JOIN queue q ON q.id = c.queue
WHERE j.id > ?1 ORDER BY j.id LIMIT ?2;
-- name: copy_last_job
SELECT id FROM job ORDER BY id DESC LIMIT 1;
-- name: copy_put_body
INSERT INTO body (id, lane, key, payload, created_at, max_attempts, timeout_us, parent, group_id,
                  trace, expires_at, lock)
VALUES (?1, ?26, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING;
-- name: copy_put_job
INSERT INTO job (id, lane, priority, state, attempt, transient, lost, fence, owner, claimed_at,
                 available_at, finished_at, reason, lock)
VALUES (?1, ?26, ?15, CASE WHEN ?16 = 1 AND ?27 IS NOT NULL THEN -1 ELSE ?16 END, ?17, ?18, ?19, ?20, ?21, ?22,
        CASE WHEN ?16 = 2 AND ?25 = 1 THEN NULL ELSE nullif(?23, 0) END, ?24, ?25, ?27)
ON CONFLICT DO NOTHING;
-- name: copy_put_due
INSERT INTO due (at_wall, job) SELECT ?23, ?1 WHERE ?16 = 2 AND ?25 = 1 ON CONFLICT DO NOTHING;

-- name: copy_read_result
SELECT job, result FROM result WHERE job > ?1 ORDER BY job LIMIT ?2;
-- name: copy_last_result
SELECT job FROM result ORDER BY job DESC LIMIT 1;
-- name: copy_put_result
INSERT INTO result (job, result) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- name: copy_read_poison
SELECT job FROM poison WHERE job > ?1 ORDER BY job LIMIT ?2;
-- name: copy_last_poison
SELECT job FROM poison ORDER BY job DESC LIMIT 1;
-- name: copy_put_poison
INSERT INTO poison (job) VALUES (?1) ON CONFLICT DO NOTHING;

-- name: copy_read_cancel_ask
SELECT job, fence, session FROM cancel_ask WHERE job > ?1 ORDER BY job LIMIT ?2;
-- name: copy_last_cancel_ask
SELECT job FROM cancel_ask ORDER BY job DESC LIMIT 1;
-- name: copy_put_cancel_ask
INSERT INTO cancel_ask (job, fence, session) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: copy_read_key
SELECT digest, id, expires FROM job_key WHERE digest > ?1 ORDER BY digest LIMIT ?2;
-- name: copy_last_key
SELECT digest FROM job_key ORDER BY digest DESC LIMIT 1;
-- name: copy_put_key
INSERT INTO job_key (digest, id, expires) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: copy_read_attempt
SELECT job, fence, attempt, session, started_at, finished_at, outcome, class, exit_code, log_bytes,
       error, fingerprint
FROM attempt WHERE (job, fence) > (?1, ?2) ORDER BY job, fence LIMIT ?3;
-- name: copy_last_attempt
SELECT job, fence FROM attempt ORDER BY job DESC, fence DESC LIMIT 1;
-- name: copy_put_attempt
INSERT INTO attempt (job, fence, attempt, session, started_at, finished_at, outcome, class,
                     exit_code, log_bytes, error, fingerprint)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING;

-- name: copy_read_artifact
SELECT a.id, a.job, a.fence, q.name, a.name, a.type, a.sha256, a.size, a.stored, a.codec, a.place,
       a.created_at
FROM artifact a CROSS JOIN queue q ON q.id = a.queue WHERE a.id > ?1 ORDER BY a.id LIMIT ?2;
-- name: copy_last_artifact
SELECT id FROM artifact ORDER BY id DESC LIMIT 1;
-- name: copy_put_artifact
INSERT INTO artifact (id, job, fence, name, type, sha256, size, stored, codec, place, created_at, queue)
SELECT ?1, ?2, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 WHERE ?4 IS NOT NULL ON CONFLICT DO NOTHING;

-- name: copy_read_fetch
SELECT f.job, f.fence, f.at, q.name, f.artifact, f.kept, f.status, f.url, f.final_url, f.variant,
       f.method, f.content_type, f.encoding, f.etag, f.last_modified, f.headers, f.wire_bytes,
       f.body_bytes, f.wire_sha256, f.body_sha256, f.dns_us, f.connect_us, f.tls_us, f.first_byte_us,
       f.total_us, f.address, f.http_version, f.redirects
FROM fetch f INDEXED BY fetch_job CROSS JOIN queue q ON q.id = f.queue
WHERE (f.job, f.fence) > (?1, ?2) ORDER BY f.job, f.fence LIMIT ?3;
-- name: copy_last_fetch
SELECT job, fence FROM fetch ORDER BY job DESC, fence DESC LIMIT 1;
-- name: copy_put_fetch
INSERT INTO fetch (job, fence, at, artifact, kept, status, url, final_url, variant, method,
                   content_type, encoding, etag, last_modified, headers, wire_bytes, body_bytes,
                   wire_sha256, body_sha256, dns_us, connect_us, tls_us, first_byte_us, total_us,
                   address, http_version, redirects, queue)
SELECT ?1, ?2, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
       ?23, ?24, ?25, ?26, ?27, ?28, ?29
WHERE ?4 IS NOT NULL ON CONFLICT DO NOTHING;

-- name: copy_read_memory
SELECT key, value, expires FROM memory WHERE key > ?1 ORDER BY key LIMIT ?2;
-- name: copy_last_memory
SELECT key FROM memory ORDER BY key DESC LIMIT 1;
-- name: copy_put_memory
INSERT INTO memory (key, value, expires) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: copy_read_event
SELECT id, at, type, job, fence, session, detail FROM event WHERE id > ?1 ORDER BY id LIMIT ?2;
-- name: copy_last_event
SELECT id FROM event ORDER BY id DESC LIMIT 1;
-- name: copy_put_event
INSERT INTO event (id, at, type, job, fence, session, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING;

-- name: copy_read_metric
SELECT session, name, value FROM metric WHERE (session, name) > (?1, ?2)
ORDER BY session, name LIMIT ?3;
-- name: copy_last_metric
SELECT session, name FROM metric ORDER BY session DESC, name DESC LIMIT 1;
-- name: copy_put_metric
INSERT INTO metric (session, name, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: copy_read_throughput
SELECT q.name, c.kind, t.slot, t.n_done, t.n_skipped, t.n_failed, t.n_retried, t.n_lost, t.backoff_us,
       t.retry_after_us
FROM throughput t JOIN class c ON c.id = t.class JOIN queue q ON q.id = c.queue
WHERE (q.name, c.kind, t.slot) > (?1, ?2, ?3) ORDER BY q.name, c.kind, t.slot LIMIT ?4;
-- name: copy_last_throughput
SELECT q.name, c.kind, t.slot
FROM throughput t JOIN class c ON c.id = t.class JOIN queue q ON q.id = c.queue
ORDER BY q.name DESC, c.kind DESC, t.slot DESC LIMIT 1;
-- name: copy_put_throughput
INSERT INTO throughput
SELECT c.id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM class c JOIN queue q ON q.id = c.queue
WHERE q.name = ?1 AND c.kind = ?2 ON CONFLICT DO NOTHING;

-- Who the store is and how far it has come.
-- name: copy_facts
SELECT 'sqlite:' || (SELECT applied_at FROM migration WHERE version = 1),
       'event-' || ifnull((SELECT max(id) FROM event), 0),
       ifnull((SELECT value FROM meta WHERE key = 'next_job'), 1),
       EXISTS (SELECT 1 FROM attempt WHERE log_bytes > 0);
-- name: copy_owners
SELECT owner, count(*) FROM job INDEXED BY job_running WHERE state = 3 GROUP BY owner;
-- name: copy_any
SELECT EXISTS (SELECT 1 FROM job) OR EXISTS (SELECT 1 FROM job_key) OR EXISTS (SELECT 1 FROM event)
       OR EXISTS (SELECT 1 FROM session) OR EXISTS (SELECT 1 FROM queue)
       OR EXISTS (SELECT 1 FROM limits) OR EXISTS (SELECT 1 FROM artifact)
       OR EXISTS (SELECT 1 FROM memory);
-- name: copy_mark_drop
DELETE FROM meta WHERE key = 'copy';

-- Emptying the target.
-- name: copy_wipe_session
DELETE FROM session;
-- name: copy_wipe_throughput
DELETE FROM throughput;
-- name: copy_wipe_lane
DELETE FROM lane;
-- name: copy_wipe_class
DELETE FROM class;
-- name: copy_wipe_queue
DELETE FROM queue;
-- name: copy_wipe_body
DELETE FROM body;
-- name: copy_wipe_job
DELETE FROM job;
-- name: copy_wipe_due
DELETE FROM due;
-- name: copy_wipe_cancel_ask
DELETE FROM cancel_ask;
-- name: copy_wipe_revoked
DELETE FROM revoked;
-- name: copy_wipe_progress
DELETE FROM progress;
-- name: copy_wipe_poison
DELETE FROM poison;
-- name: copy_wipe_result
DELETE FROM result;
-- name: copy_wipe_key
DELETE FROM job_key;
-- name: copy_wipe_attempt
DELETE FROM attempt;
-- name: copy_wipe_event
DELETE FROM event;
-- name: copy_wipe_metric
DELETE FROM metric;
-- name: copy_wipe_policy
DELETE FROM meta WHERE key IN ('claim_order', 'aging', 'policy_text')
    OR key GLOB 'attempts_*';
-- name: copy_wipe_limit
DELETE FROM limits;
-- name: copy_wipe_gate
DELETE FROM gate;
-- name: copy_wipe_permit
DELETE FROM permit;
-- name: copy_wipe_admitted
DELETE FROM admitted;
-- name: copy_wipe_duty
DELETE FROM duty;
-- name: copy_wipe_artifact
DELETE FROM artifact;
-- name: copy_wipe_fetch
DELETE FROM fetch;
-- name: copy_wipe_memory
DELETE FROM memory;

-- Turns of locks, heads, counts and pauses from what was copied.
-- name: copy_policy
INSERT INTO meta VALUES ('claim_order', 0), ('aging', 0), ('policy_text', '') ON CONFLICT DO NOTHING;
-- name: copy_locks
UPDATE job SET state = 1 WHERE state = -1 AND id IN
    (SELECT (SELECT w.id FROM job w INDEXED BY job_held WHERE w.state = -1 AND w.lock = t.lock
             ORDER BY w.priority DESC, w.id LIMIT 1)
     FROM (SELECT DISTINCT lock FROM job INDEXED BY job_held WHERE state = -1) t
     WHERE NOT EXISTS (SELECT 1 FROM job r INDEXED BY job_lock
                       WHERE r.lock = t.lock AND r.lock IS NOT NULL AND r.state IN (1, 3)));
-- name: copy_lane_heads
UPDATE lane SET (head_priority, head_id) =
    (SELECT j.priority, j.id FROM job j INDEXED BY job_ready
     WHERE j.state = 1 AND j.lane = lane.id ORDER BY j.priority DESC, j.id LIMIT 1);
-- name: copy_class_heads
UPDATE class SET (head_priority, head_id) =
    (SELECT l.head_priority, l.head_id FROM lane l INDEXED BY lane_ready
     WHERE l.class = class.id AND l.head_id IS NOT NULL AND l.parked IS NULL
     ORDER BY l.head_priority DESC, l.turn, l.head_id LIMIT 1),
    paused = (SELECT q.paused_at IS NOT NULL FROM queue q WHERE q.id = class.queue);
-- name: copy_counts
UPDATE class SET n_blocked = t.n0, n_queued = t.n1, n_waiting = t.n2, n_running = t.n3,
    n_done = t.n4, n_skipped = t.n5, n_failed = t.n6, n_cancelled = t.n7
FROM (SELECT l.class AS id, sum(j.state = 0) AS n0,
             sum(j.state IN (-1, 1)) AS n1, sum(j.state = 2) AS n2,
             sum(j.state = 3) AS n3, sum(j.state = 4) AS n4, sum(j.state = 5) AS n5,
             sum(j.state = 6) AS n6, sum(j.state = 7) AS n7
      FROM job j JOIN lane l ON l.id = j.lane GROUP BY l.class) t
WHERE t.id = class.id;
-- name: copy_running
SELECT id, fence FROM job INDEXED BY job_running WHERE state = 3 LIMIT ?1;
