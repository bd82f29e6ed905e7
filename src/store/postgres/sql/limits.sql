-- Limits, gates, locks, duties, history. Whoever changes limits or order holds the lock of the policy
-- alone; claims share it.

-- define: gate_view
g.id, g.value, g.tat, g.interval_us, g.cut_at, g.raised_at, g.held_until, g.held_at, g.held_n,
       g.held_asked, g.breaker::int, g.since, g.until, g.failures, g.opens, g.epoch, g.probe_job,
       g.probe_fence, g.window_at, g.window_calls, g.window_failures, g.why,
       (SELECT count(*) FROM pawl.permit p WHERE p.gate = g.id),
       (SELECT count(*) FROM pawl.lane x WHERE x.parked = g.id), g.pace_us, g.limit_id

-- The lock l.lock: its holder, who waits, who is next.
-- define: lock_view
(SELECT b.lock FROM pawl.body b WHERE b.id = coalesce(h.id, n.id)), h.id, h.fence, h.name,
       h.claimed_at, h.lease_until,
       (SELECT count(*) FROM pawl.job j WHERE j.lock = l.lock AND j.state = -1) +
       (SELECT count(*) FROM pawl.job j WHERE j.lock = l.lock AND j.state = 1), n.id

-- define: of_lock
LEFT JOIN LATERAL
         (SELECT j.id, j.fence, j.claimed_at, s.name, s.lease_until
          FROM pawl.job j LEFT JOIN LATERAL
               (SELECT name, lease_until FROM pawl.session WHERE session.id = j.owner OFFSET 0) s ON true
          WHERE j.lock = l.lock AND j.state = 3 OFFSET 0) h ON true
     LEFT JOIN LATERAL
         (SELECT w.id
          FROM ((SELECT j.rank, j.id FROM pawl.job j WHERE j.lock = l.lock AND j.state = -1
                 ORDER BY j.rank, j.id LIMIT 1)
                UNION ALL
                SELECT j.rank, j.id FROM pawl.job j WHERE j.lock = l.lock AND j.state = 1) w
          ORDER BY w.rank, w.id LIMIT 1) n ON true

-- How much of the priority may come by waiting; due: more than it has.
-- define: level
least(1000, 1000000 + j.rank + j.aged, (t.now - j.available_at) / nullif(t.aging, 0))::int

-- name: policy_lock
SELECT pg_advisory_xact_lock(pawl.name_id('pawl.policy', ''));
-- name: policy_read
SELECT (SELECT value FROM pawl.meta WHERE key = 'policy_text'),
       (SELECT value::int FROM pawl.meta WHERE key = 'claim_order'),
       (SELECT value::bigint FROM pawl.meta WHERE key = 'aging');
-- name: policy_put
UPDATE pawl.meta m SET value = u.value
FROM (VALUES ('policy_text', $1::text), ('claim_order', $2::int::text), ('aging', $3::bigint::text)) u (key, value)
WHERE m.key = u.key AND m.value <> u.value;
-- name: policy_grow
UPDATE pawl.meta SET value = (value::bigint + 1)::text WHERE key = 'policy';
-- name: turns_drop
UPDATE pawl.lane SET turn = 0 WHERE turn <> 0;

-- name: limits_all
SELECT id, name, text, config, by_operator, changed_at FROM pawl.limits ORDER BY name;
-- name: limit_put
INSERT INTO pawl.limits (id, name, text, config, by_operator, changed_at, queue, kind, hosts, each, replaces,
                         cap, interval_us, burst, adaptive, slowest_us, respect, pause_us, max_pause_us,
                         threshold, percent, min_calls, window_us, open_us, max_open_us)
SELECT coalesce(max(id), 0) + 1, $1::text, $2::text, $3::text, $4::boolean,
       coalesce($24::bigint, pawl.now_us()), $5::text, $6::text, $7::text[], $8::int, $9::boolean, $10::int,
       $11::bigint, $12::int, $13::boolean, $14::bigint, $15::boolean, $16::bigint, $17::bigint, $18::int,
       $19::int, $20::int, $21::bigint, $22::bigint, $23::bigint
FROM pawl.limits
ON CONFLICT (name) DO UPDATE SET text = excluded.text, config = excluded.config,
    by_operator = excluded.by_operator, changed_at = excluded.changed_at, queue = excluded.queue,
    kind = excluded.kind, hosts = excluded.hosts, each = excluded.each, replaces = excluded.replaces,
    cap = excluded.cap, interval_us = excluded.interval_us, burst = excluded.burst,
    adaptive = excluded.adaptive, slowest_us = excluded.slowest_us, respect = excluded.respect,
    pause_us = excluded.pause_us, max_pause_us = excluded.max_pause_us, threshold = excluded.threshold,
    percent = excluded.percent, min_calls = excluded.min_calls, window_us = excluded.window_us,
    open_us = excluded.open_us, max_open_us = excluded.max_open_us;
-- name: limit_drop
DELETE FROM pawl.limits WHERE id = $1::bigint;

-- All that a removed limit leaves: its gates are locked in the order of ids, as by whoever ends leases.
-- name: gates_lock
SELECT count(*) FROM (SELECT id FROM pawl.gate WHERE limit_id = $1::bigint ORDER BY id FOR UPDATE) g;
-- name: gates_drop
WITH gone AS MATERIALIZED (
    DELETE FROM pawl.gate WHERE limit_id = $1::bigint RETURNING id
), permits AS (
    DELETE FROM pawl.permit p USING gone g WHERE p.gate = g.id
)
UPDATE pawl.lane l SET parked = NULL FROM gone g WHERE l.parked = g.id;
-- Lanes that wait are looked at again: their gates may be others, or open.
-- name: gates_wake
UPDATE pawl.gate g SET wake_at = pawl.now_us()
FROM (SELECT x.id FROM pawl.gate x
      WHERE x.id IN (SELECT DISTINCT parked FROM pawl.lane WHERE parked IS NOT NULL)
      ORDER BY x.id FOR UPDATE) w
WHERE g.id = w.id;

-- Running jobs count under the limits that hold now. Nothing is claimed meanwhile, and what ends
-- has been waited for.
-- name: running_lock
SELECT count(*) FROM (SELECT id FROM pawl.job WHERE state = 3 ORDER BY id FOR UPDATE) j;
-- name: running_lanes
SELECT count(*)
FROM (SELECT id FROM pawl.lane WHERE id = ANY (ARRAY(SELECT DISTINCT lane FROM pawl.job WHERE state = 3))
      ORDER BY id FOR UPDATE) l;
-- name: running_map
SELECT pawl.map_lanes(array_agg(DISTINCT j.lane), (SELECT value::bigint FROM pawl.meta WHERE key = 'policy'))
FROM pawl.job j WHERE j.state = 3 HAVING count(*) > 0;
-- name: permits_drop
DELETE FROM pawl.permit p WHERE NOT coalesce(
    (SELECT p.gate = ANY (l.gates) FROM pawl.job j CROSS JOIN LATERAL
            (SELECT gates FROM pawl.lane WHERE lane.id = j.lane OFFSET 0) l
     WHERE j.id = p.job AND j.state + 0 = 3), false);
-- Those of other hosts that running jobs were admitted to; their gates may be new.
-- name: admitted_gates
INSERT INTO pawl.gate (id, limit_id, value, policy)
SELECT DISTINCT ON (h.gate) h.gate, h.limit_id, h.value,
       (SELECT value::bigint FROM pawl.meta WHERE key = 'policy')
FROM pawl.admitted a CROSS JOIN LATERAL
     (SELECT queue, kind FROM pawl.body WHERE body.id = a.job OFFSET 0) b
     CROSS JOIN LATERAL pawl.host_gates(b.queue, b.kind, a.host) h
ORDER BY h.gate ON CONFLICT DO NOTHING;
-- name: admitted_permits
INSERT INTO pawl.permit (job, gate)
SELECT a.job, h.gate
FROM pawl.admitted a CROSS JOIN LATERAL
     (SELECT queue, kind FROM pawl.body WHERE body.id = a.job OFFSET 0) b
     CROSS JOIN LATERAL pawl.host_gates(b.queue, b.kind, a.host) h
ON CONFLICT DO NOTHING;
-- name: permits_add
INSERT INTO pawl.permit (job, gate)
SELECT j.id, unnest(l.gates)
FROM (SELECT id, lane FROM pawl.job WHERE state = 3) j CROSS JOIN LATERAL
     (SELECT gates FROM pawl.lane WHERE lane.id = j.lane OFFSET 0) l
ON CONFLICT DO NOTHING;

-- Gates of one limit: $2 the first value, $3 the only one or null, $4 how many.
-- name: gates_page
SELECT @gate_view, pawl.now_us()
FROM (SELECT * FROM pawl.gate
      WHERE limit_id = $1::bigint AND value >= $2::text AND ($3::text IS NULL OR value = $3::text)
      ORDER BY value LIMIT $4::int) g
ORDER BY g.value;
-- name: breaker_lock
SELECT count(*)
FROM (SELECT id FROM pawl.gate
      WHERE limit_id = ANY ($1::bigint[]) AND ($2::text IS NULL OR value = $2::text)
      ORDER BY id FOR UPDATE) g;
-- name: breaker_read
SELECT @gate_view, pawl.now_us()
FROM pawl.gate g JOIN pawl.limits l ON l.id = g.limit_id
WHERE g.limit_id = ANY ($1::bigint[]) AND ($2::text IS NULL OR g.value = $2::text)
ORDER BY l.name, g.value;
-- name: breaker_put
UPDATE pawl.gate g SET tat = u.tat, interval_us = u.interval_us, cut_at = u.cut_at, raised_at = u.raised_at,
    held_until = u.held_until, held_at = u.held_at, held_n = u.held_n, held_asked = u.held_asked <> 0,
    breaker = u.breaker, since = u.since, until = u.until, failures = u.failures, opens = u.opens,
    epoch = u.epoch, probe_job = u.probe_job, probe_fence = u.probe_fence, window_at = u.window_at,
    window_calls = u.window_calls, window_failures = u.window_failures, pace_us = u.pace_us, why = u.why,
    wake_at = CASE WHEN EXISTS (SELECT 1 FROM pawl.lane l WHERE l.parked = g.id)
                   THEN pawl.now_us() ELSE g.wake_at END
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
            $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
            $19::bigint[], $20::bigint[], $21::bigint[], $22::text[])
     u (id, tat, interval_us, cut_at, raised_at, held_until, held_at, held_n, held_asked, breaker, since,
        until, failures, opens, epoch, probe_job, probe_fence, window_at, window_calls, window_failures,
        pace_us, why)
WHERE g.id = u.id;
-- name: events_insert
INSERT INTO pawl.event (at, type, detail)
SELECT t.now, u.type, u.detail
FROM (SELECT pawl.now_us() AS now) t, unnest($1::int[], $2::text[]) WITH ORDINALITY u (type, detail, o)
ORDER BY u.o;

-- name: locks_all
WITH RECURSIVE held AS (
    (SELECT lock FROM pawl.job WHERE state = -1 ORDER BY lock LIMIT 1)
    UNION ALL
    SELECT x.lock FROM held h CROSS JOIN LATERAL
        (SELECT lock FROM pawl.job WHERE state = -1 AND lock > h.lock ORDER BY lock LIMIT 1) x
), l AS (
    SELECT lock FROM pawl.job WHERE lock IS NOT NULL AND state IN (1, 3)
    UNION
    SELECT lock FROM held
)
SELECT @lock_view FROM l @of_lock ORDER BY 1;
-- name: lock_one
SELECT @lock_view FROM (VALUES ($1::bigint)) l (lock) @of_lock
WHERE h.id IS NOT NULL OR n.id IS NOT NULL;
-- name: lock_holder
SELECT j.id, j.fence,
       (SELECT s.ended_at IS NULL AND s.lease_until > pawl.now_us() FROM pawl.session s
        WHERE s.id = j.owner)
FROM pawl.job j WHERE j.lock = $1::bigint AND j.state = 3 FOR UPDATE OF j;

-- One session at a time has it; $4 is how far that one has come.
-- name: duty_take
INSERT INTO pawl.duty AS d (name, session, until, done)
SELECT $1::text, $2::bigint, t + $3::bigint, 0 FROM pawl.now_us() t
ON CONFLICT (name) DO UPDATE SET
    done = CASE WHEN d.session = excluded.session AND $4::bigint >= 0 THEN $4::bigint ELSE d.done END,
    session = excluded.session, until = excluded.until
WHERE d.session = excluded.session OR d.until <= pawl.now_us()
RETURNING d.done;
-- name: duty_look
SELECT done FROM pawl.duty WHERE name = $1::text;

-- name: history_events
WITH gone AS (
    DELETE FROM pawl.event WHERE id < (SELECT max(id) FROM pawl.event) AND id = ANY (ARRAY
        (SELECT id FROM (SELECT id, at FROM pawl.event ORDER BY id LIMIT $2::int) x WHERE at < $1::bigint))
    RETURNING 1
)
SELECT count(*) FROM gone;
-- Of jobs that ended in state $1 before $2, the next $3 after where the last call came: all attempts
-- but the last. Returns how many jobs those were, and whose output was kept in a log.
-- name: history_attempts
WITH c AS MATERIALIZED (
    SELECT split_part(m.value, ' ', 1)::bigint AS at, split_part(m.value, ' ', 2)::bigint AS id
    FROM (SELECT coalesce((SELECT value FROM pawl.meta WHERE key = 'attempts_pruned_' || $1::int), '0 0')) m (value)
), page AS MATERIALIZED (
    SELECT s.* FROM c CROSS JOIN LATERAL
        (SELECT id, finished_at FROM pawl.settled
         WHERE state = $1::int AND finished_at >= c.at AND finished_at < $2::bigint
           AND (finished_at > c.at OR id > c.id)
         ORDER BY finished_at, id LIMIT $3::int) s
), old AS MATERIALIZED (
    SELECT a.job, a.fence FROM page p CROSS JOIN LATERAL
        (SELECT job, fence FROM pawl.attempt WHERE attempt.job = p.id ORDER BY fence DESC OFFSET 1) a
), gone AS (
    DELETE FROM pawl.attempt a USING old o WHERE a.job = o.job AND a.fence = o.fence
    RETURNING a.job, a.fence, a.log_bytes
), no_fetch AS (
    DELETE FROM pawl.fetch f USING old o WHERE f.job = o.job AND f.fence = o.fence AND f.artifact IS NULL
), kept AS (
    INSERT INTO pawl.meta (key, value)
    SELECT 'attempts_pruned_' || $1::int, p.finished_at || ' ' || p.id
    FROM page p ORDER BY p.finished_at DESC, p.id DESC LIMIT 1
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
)
SELECT n.n, g.job, g.fence
FROM (SELECT count(*) AS n FROM page) n LEFT JOIN (SELECT * FROM gone WHERE log_bytes <> 0) g ON true;

-- From job to job within a lane and priority while their time has come, else on to the next of these.
-- name: age_jobs
WITH RECURSIVE t AS MATERIALIZED (
    SELECT pawl.now_us() AS now, (SELECT value::bigint FROM pawl.meta WHERE key = 'aging') AS aging
), walk AS (
    (SELECT j.lane, j.rank, j.id, @level > j.aged AS due
     FROM t CROSS JOIN LATERAL
          (SELECT * FROM pawl.job WHERE state = 1 AND t.aging > 0 ORDER BY lane, rank, id LIMIT 1) j)
    UNION ALL
    SELECT j.lane, j.rank, j.id, @level > j.aged
    FROM walk w CROSS JOIN t CROSS JOIN LATERAL
         (SELECT * FROM pawl.job x
          WHERE x.state = 1 AND (x.lane, x.rank, x.id) >
                (w.lane, w.rank, CASE WHEN w.due THEN w.id ELSE 9223372036854775807 END)
          ORDER BY x.lane, x.rank, x.id LIMIT 1) j
), mine AS MATERIALIZED (
    SELECT j.id FROM pawl.job j
    WHERE j.id = ANY (ARRAY(SELECT id FROM walk WHERE due LIMIT $1::int)) AND j.state + 0 = 1
    ORDER BY j.id FOR UPDATE SKIP LOCKED
), up AS (
    UPDATE pawl.job j SET rank = j.rank + j.aged - @level, aged = @level
    FROM mine m, t WHERE j.id = m.id AND j.state + 0 = 1
    RETURNING j.id, j.lane, j.rank
), woken AS (
    INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
    SELECT DISTINCT ON (u.lane) u.lane, b.queue, b.kind, b.host, u.rank, u.id
    FROM up u CROSS JOIN LATERAL
         (SELECT queue, kind, host FROM pawl.body WHERE body.id = u.id OFFSET 0) b
    ORDER BY u.lane, u.rank, u.id
)
SELECT count(*) FROM up;
