-- Copying stores (copy.h). copy_read_X: the columns of copy.def for keys above the first parameters, in their order;
-- the last two parameters are how many, and how many bytes of large columns. copy_last_X: the highest key. copy_put_X:
-- rows, one array a column; bytes in hex.

-- name: copy_read_session
SELECT id, uid, name, host, pid, started_at, renewed_at, lease_until, ended_at, lost::int, command,
       slots, running, pools, filter
FROM pawl.session WHERE id > $1::bigint AND $3::bigint > 0 ORDER BY id LIMIT $2::int;
-- name: copy_last_session
SELECT id FROM pawl.session ORDER BY id DESC LIMIT 1;
-- name: copy_put_session
INSERT INTO pawl.session (id, uid, name, host, pid, started_at, renewed_at, lease_until, ended_at,
                          lost, command, slots, running, pools, filter)
SELECT u.id, u.uid, u.name, u.host, u.pid::int, u.started_at, u.renewed_at, u.lease_until, u.ended_at,
       u.lost <> 0, u.command::int, u.slots::int, u.running::int, u.pools, u.filter
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[],
            $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
            $13::bigint[], $14::text[], $15::text[])
     u (id, uid, name, host, pid, started_at, renewed_at, lease_until, ended_at, lost, command, slots,
        running, pools, filter)
ON CONFLICT DO NOTHING;

-- What deltas tell and nobody has folded yet counts too.
-- name: copy_read_class
SELECT c.queue, c.kind, sum(c.retries)::bigint, min(c.first_at)
FROM (SELECT queue, kind, n_retries AS retries, first_at FROM pawl.class
      UNION ALL SELECT queue, kind, e_retried, first_at FROM pawl.delta) c
WHERE (c.queue, c.kind) > ($1::text, $2::text) AND $4::bigint > 0
GROUP BY c.queue, c.kind ORDER BY c.queue, c.kind LIMIT $3::int;
-- name: copy_last_class
SELECT queue, kind FROM pawl.class ORDER BY queue DESC, kind DESC LIMIT 1;
-- name: copy_put_class
INSERT INTO pawl.class (id, queue, kind, n_blocked, n_queued, n_waiting, n_running, n_done, n_skipped,
                        n_failed, n_cancelled, n_retries, first_at)
SELECT pawl.name_id(u.queue, u.kind), u.queue, u.kind, 0, 0, 0, 0, 0, 0, 0, 0, u.retries, u.first_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) u (queue, kind, retries, first_at)
ON CONFLICT DO NOTHING;

-- name: copy_read_pause
SELECT name, paused_at FROM pawl.queue
WHERE paused_at IS NOT NULL AND name > $1::text AND $3::bigint > 0 ORDER BY name LIMIT $2::int;
-- name: copy_last_pause
SELECT name FROM pawl.queue WHERE paused_at IS NOT NULL ORDER BY name DESC LIMIT 1;
-- name: copy_put_pause
INSERT INTO pawl.queue (name, paused_at)
SELECT u.name, u.paused_at FROM unnest($1::text[], $2::bigint[]) u (name, paused_at)
ON CONFLICT DO NOTHING;

-- name: copy_read_policy
SELECT key, value FROM pawl.meta
WHERE key IN ('aging', 'claim_order', 'policy_text') AND key > $1::text AND $3::bigint > 0
ORDER BY key LIMIT $2::int;
-- name: copy_last_policy
SELECT key FROM pawl.meta WHERE key IN ('aging', 'claim_order', 'policy_text') ORDER BY key DESC LIMIT 1;
-- name: copy_put_policy
INSERT INTO pawl.meta (key, value) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING;

-- Their numbers are made from the texts when the copy is finished.
-- name: copy_read_limit
SELECT name, text, config, by_operator::int, changed_at FROM pawl.limits
WHERE name > $1::text AND $3::bigint > 0 ORDER BY name LIMIT $2::int;
-- name: copy_last_limit
SELECT name FROM pawl.limits ORDER BY name DESC LIMIT 1;
-- name: copy_put_limit
INSERT INTO pawl.limits (id, name, text, config, by_operator, changed_at)
SELECT (SELECT coalesce(max(id), 0) FROM pawl.limits) + u.o, u.name, u.text, u.config, u.by_operator <> 0,
       u.changed_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) WITH ORDINALITY
     u (name, text, config, by_operator, changed_at, o)
ON CONFLICT DO NOTHING;

-- name: copy_read_gate
SELECT l.name, g.value, g.tat, g.interval_us, g.cut_at, g.raised_at, g.held_until, g.held_at, g.held_n,
       g.held_asked::int, g.breaker, g.since, g.until, g.failures, g.opens, g.epoch, g.probe_job,
       g.probe_fence, g.window_at, g.window_calls, g.window_failures, g.why, g.pace_us
FROM pawl.limits l JOIN pawl.gate g ON g.limit_id = l.id
WHERE (l.name, g.value) > ($1::text, $2::text) AND $4::bigint > 0 ORDER BY l.name, g.value LIMIT $3::int;
-- name: copy_last_gate
SELECT l.name, g.value FROM pawl.limits l JOIN pawl.gate g ON g.limit_id = l.id
ORDER BY l.name DESC, g.value DESC LIMIT 1;
-- name: copy_put_gate
INSERT INTO pawl.gate (id, limit_id, value, tat, interval_us, cut_at, raised_at, held_until, held_at, held_n,
                       held_asked, breaker, since, until, failures, opens, epoch, probe_job, probe_fence,
                       window_at, window_calls, window_failures, why, pace_us)
SELECT pawl.name_id(l.name, u.value), l.id, u.value, u.tat, u.interval_us, u.cut_at, u.raised_at,
       u.held_until, u.held_at, u.held_n::int, u.held_asked <> 0, u.breaker::int, u.since, u.until,
       u.failures::int, u.opens::int, u.epoch, u.probe_job, u.probe_fence, u.window_at,
       u.window_calls::int, u.window_failures::int, u.why, u.pace_us
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
            $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
            $20::bigint[], $21::bigint[], $22::text[], $23::bigint[])
     u (name, value, tat, interval_us, cut_at, raised_at, held_until, held_at, held_n, held_asked,
        breaker, since, until, failures, opens, epoch, probe_job, probe_fence, window_at, window_calls,
        window_failures, why, pace_us)
     JOIN pawl.limits l ON l.name = u.name
ON CONFLICT DO NOTHING;

-- name: copy_read_job
SELECT b.id, b.queue, b.kind, b.host, b.key, b.payload, b.created_at, b.max_attempts, b.timeout_us,
       b.parent, b.group_id, b.trace, b.expires_at, b.lock, -coalesce(j.rank + j.aged, s.rank),
       CASE j.state WHEN -1 THEN 1 ELSE coalesce(j.state, s.state) END, coalesce(j.attempt, s.attempt), coalesce(j.transient, s.transient),
       coalesce(j.lost, s.lost), coalesce(j.fence, s.fence), j.owner,
       coalesce(j.claimed_at, s.claimed_at), coalesce(j.available_at, s.available_at), s.finished_at,
       coalesce(j.reason, s.reason)
FROM (SELECT x.id, sum(octet_length(x.payload)) OVER (ORDER BY x.id) - octet_length(x.payload) AS before
      FROM (SELECT id, payload FROM pawl.body WHERE id > $1::bigint ORDER BY id LIMIT $2::int) x) p
     JOIN pawl.body b ON b.id = p.id LEFT JOIN pawl.job j ON j.id = p.id
     LEFT JOIN pawl.settled s ON s.id = p.id
WHERE p.before < $3::bigint ORDER BY b.id;
-- name: copy_last_job
SELECT id FROM pawl.body ORDER BY id DESC LIMIT 1;
-- name: copy_put_job
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                         $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
                         $12::text[], $13::bigint[], $14::text[], $15::bigint[], $16::bigint[],
                         $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
                         $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[])
        u (id, queue, kind, host, key, payload, created_at, max_attempts, timeout_us, parent, group_id,
           trace, expires_at, lock, priority, state, attempt, transient, lost, fence, owner,
           claimed_at, available_at, finished_at, reason)
), b AS (
    INSERT INTO pawl.body (id, queue, kind, host, key, payload, created_at, max_attempts, timeout_us,
                           parent, group_id, trace, expires_at, lock)
    SELECT id, queue, kind, host, key, payload, created_at, max_attempts::int, timeout_us, parent,
           group_id, trace, expires_at, lock
    FROM u ON CONFLICT DO NOTHING
), j AS (
    INSERT INTO pawl.job (id, lane, fence, owner, claimed_at, available_at, rank, attempt, transient,
                          lost, state, reason, lock)
    SELECT id, pawl.name_id(queue, kind, host), fence, owner, claimed_at, available_at,
           -priority::int, attempt::int, transient::int, lost::int,
           CASE WHEN state = 1 AND lock IS NOT NULL THEN -1 ELSE state END::int, reason::int,
           ('x' || encode(substr(sha256(convert_to(lock, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
    FROM u WHERE state < 4 ON CONFLICT DO NOTHING
)
INSERT INTO pawl.settled (id, lane, fence, claimed_at, available_at, finished_at, rank, attempt,
                          transient, lost, state, reason)
SELECT id, pawl.name_id(queue, kind, host), fence, claimed_at, available_at, finished_at,
       -priority::int, attempt::int, transient::int, lost::int, state::int, reason::int
FROM u WHERE state >= 4 ON CONFLICT DO NOTHING;

-- name: copy_read_result
SELECT r.job, r.result
FROM (SELECT x.job, sum(octet_length(x.result)) OVER (ORDER BY x.job) - octet_length(x.result) AS before
      FROM (SELECT job, result FROM pawl.result WHERE job > $1::bigint ORDER BY job LIMIT $2::int) x) p
     JOIN pawl.result r ON r.job = p.job
WHERE p.before < $3::bigint ORDER BY r.job;
-- name: copy_last_result
SELECT job FROM pawl.result ORDER BY job DESC LIMIT 1;
-- name: copy_put_result
INSERT INTO pawl.result (job, result) SELECT * FROM unnest($1::bigint[], $2::text[])
ON CONFLICT DO NOTHING;

-- name: copy_read_poison
SELECT job FROM pawl.poison WHERE job > $1::bigint AND $3::bigint > 0 ORDER BY job LIMIT $2::int;
-- name: copy_last_poison
SELECT job FROM pawl.poison ORDER BY job DESC LIMIT 1;
-- name: copy_put_poison
INSERT INTO pawl.poison (job) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING;

-- name: copy_read_cancel_ask
SELECT job, fence, session FROM pawl.cancel_ask WHERE job > $1::bigint AND $3::bigint > 0
ORDER BY job LIMIT $2::int;
-- name: copy_last_cancel_ask
SELECT job FROM pawl.cancel_ask ORDER BY job DESC LIMIT 1;
-- name: copy_put_cancel_ask
INSERT INTO pawl.cancel_ask (job, fence, session)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) ON CONFLICT DO NOTHING;

-- name: copy_read_key
SELECT digest, id, expires FROM pawl.job_key WHERE digest > $1::bytea AND $3::bigint > 0
ORDER BY digest LIMIT $2::int;
-- name: copy_last_key
SELECT digest FROM pawl.job_key ORDER BY digest DESC LIMIT 1;
-- name: copy_put_key
INSERT INTO pawl.job_key (digest, id, expires)
SELECT decode(u.digest, 'hex'), u.id, u.expires
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) u (digest, id, expires) ON CONFLICT DO NOTHING;

-- name: copy_read_attempt
SELECT job, fence, attempt, session, started_at, finished_at, outcome, class, exit_code, log_bytes,
       error, fingerprint
FROM pawl.attempt WHERE (job, fence) > ($1::bigint, $2::bigint) AND $4::bigint > 0
ORDER BY job, fence LIMIT $3::int;
-- name: copy_last_attempt
SELECT job, fence FROM pawl.attempt ORDER BY job DESC, fence DESC LIMIT 1;
-- name: copy_put_attempt
INSERT INTO pawl.attempt (job, fence, attempt, session, started_at, finished_at, outcome, class,
                          exit_code, log_bytes, error, fingerprint)
SELECT u.job, u.fence, u.attempt::int, u.session, u.started_at, u.finished_at, u.outcome::int,
       u.class::int, u.exit_code::int, u.log_bytes, u.error, u.fingerprint
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[])
     u (job, fence, attempt, session, started_at, finished_at, outcome, class, exit_code, log_bytes,
        error, fingerprint)
ON CONFLICT DO NOTHING;

-- name: copy_read_artifact
SELECT id, job, fence, queue, name, type, sha256, size, stored, codec, place, created_at FROM pawl.artifact
WHERE id > $1::bigint AND $3::bigint > 0 ORDER BY id LIMIT $2::int;
-- name: copy_last_artifact
SELECT id FROM pawl.artifact ORDER BY id DESC LIMIT 1;
-- name: copy_put_artifact
INSERT INTO pawl.artifact (id, job, fence, queue, name, type, sha256, size, stored, codec, place, created_at)
SELECT u.id, u.job, u.fence, u.queue, u.name, u.type, decode(u.sha256, 'hex'), u.size, u.stored,
       u.codec::int, u.place, u.created_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
            $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[])
     u (id, job, fence, queue, name, type, sha256, size, stored, codec, place, created_at)
ON CONFLICT DO NOTHING;

-- name: copy_read_fetch
SELECT f.job, f.fence, f.at, f.queue, f.artifact, f.kept::int, f.status, f.url, f.final_url, f.variant,
       f.method, f.content_type, f.encoding, f.etag, f.last_modified, f.headers, f.wire_bytes,
       f.body_bytes, f.wire_sha256, f.body_sha256, f.dns_us, f.connect_us, f.tls_us, f.first_byte_us,
       f.total_us, f.address, f.http_version, f.redirects
FROM (SELECT x.job, x.fence, sum(x.n) OVER (ORDER BY x.job, x.fence) - x.n AS before
      FROM (SELECT job, fence, octet_length(url) + coalesce(octet_length(final_url), 0)
                               + coalesce(octet_length(headers), 0)
                               + coalesce(octet_length(redirects), 0) AS n
            FROM pawl.fetch WHERE (job, fence) > ($1::bigint, $2::bigint)
            ORDER BY job, fence LIMIT $3::int) x) p
     JOIN pawl.fetch f ON f.job = p.job AND f.fence = p.fence
WHERE p.before < $4::bigint ORDER BY f.job, f.fence;
-- name: copy_last_fetch
SELECT job, fence FROM pawl.fetch ORDER BY job DESC, fence DESC LIMIT 1;
-- name: copy_put_fetch
INSERT INTO pawl.fetch (job, fence, at, queue, artifact, kept, status, url, final_url, variant, method,
                        content_type, encoding, etag, last_modified, headers, wire_bytes, body_bytes,
                        wire_sha256, body_sha256, dns_us, connect_us, tls_us, first_byte_us, total_us,
                        address, http_version, redirects)
SELECT u.job, u.fence, u.at, u.queue, u.artifact, u.kept <> 0, u.status::int, u.url, u.final_url,
       u.variant, u.method, u.content_type, u.encoding, u.etag, u.last_modified, u.headers, u.wire_bytes,
       u.body_bytes, decode(u.wire_sha256, 'hex'), decode(u.body_sha256, 'hex'), u.dns_us, u.connect_us,
       u.tls_us, u.first_byte_us, u.total_us, u.address, u.http_version, u.redirects
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
            $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
            $14::text[], $15::text[], $16::text[], $17::bigint[], $18::bigint[], $19::text[],
            $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[],
            $26::text[], $27::text[], $28::text[])
     u (job, fence, at, queue, artifact, kept, status, url, final_url, variant, method, content_type,
        encoding, etag, last_modified, headers, wire_bytes, body_bytes, wire_sha256, body_sha256, dns_us,
        connect_us, tls_us, first_byte_us, total_us, address, http_version, redirects)
ON CONFLICT DO NOTHING;

-- name: copy_read_memory
SELECT m.key, m.value, m.expires
FROM (SELECT x.key, sum(octet_length(x.value)) OVER (ORDER BY x.key) - octet_length(x.value) AS before
      FROM (SELECT key, value FROM pawl.memory WHERE key > $1::text ORDER BY key LIMIT $2::int) x) p
     JOIN pawl.memory m ON m.key = p.key
WHERE p.before < $3::bigint ORDER BY m.key;
-- name: copy_last_memory
SELECT key FROM pawl.memory ORDER BY key DESC LIMIT 1;
-- name: copy_put_memory
INSERT INTO pawl.memory (key, value, expires)
SELECT u.key, decode(u.value, 'hex'), u.expires
FROM unnest($1::text[], $2::text[], $3::bigint[]) u (key, value, expires) ON CONFLICT DO NOTHING;

-- name: copy_read_event
SELECT id, at, type, job, fence, session, detail FROM pawl.event
WHERE id > $1::bigint AND $3::bigint > 0 ORDER BY id LIMIT $2::int;
-- name: copy_last_event
SELECT id FROM pawl.event ORDER BY id DESC LIMIT 1;
-- name: copy_put_event
INSERT INTO pawl.event (id, at, type, job, fence, session, detail)
SELECT u.id, u.at, u.type::int, u.job, u.fence, u.session, u.detail
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::text[]) u (id, at, type, job, fence, session, detail)
ON CONFLICT DO NOTHING;

-- name: copy_read_metric
SELECT session, name, value FROM pawl.metric
WHERE (session, name) > ($1::bigint, $2::text) AND $4::bigint > 0 ORDER BY session, name LIMIT $3::int;
-- name: copy_last_metric
SELECT session, name FROM pawl.metric ORDER BY session DESC, name DESC LIMIT 1;
-- name: copy_put_metric
INSERT INTO pawl.metric (session, name, value)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING;

-- name: copy_read_throughput
SELECT t.queue, t.kind, t.slot, sum(t.done)::bigint, sum(t.skipped)::bigint, sum(t.failed)::bigint,
       sum(t.retried)::bigint, sum(t.lost)::bigint, sum(t.backoff)::bigint, sum(t.after)::bigint
FROM (SELECT c.queue, c.kind, x.slot, x.n_done AS done, x.n_skipped AS skipped, x.n_failed AS failed,
             x.n_retried AS retried, x.n_lost AS lost, x.backoff_us AS backoff,
             x.retry_after_us AS after
      FROM pawl.throughput x JOIN pawl.class c ON c.id = x.class
      UNION ALL
      SELECT queue, kind, at / 10000000, e_done, e_skipped, e_failed, e_retried, e_lost, backoff_us,
             retry_after_us
      FROM pawl.delta WHERE (e_done | e_skipped | e_failed | e_retried | e_lost) <> 0) t
WHERE (t.queue, t.kind, t.slot) > ($1::text, $2::text, $3::bigint) AND $5::bigint > 0
GROUP BY t.queue, t.kind, t.slot ORDER BY t.queue, t.kind, t.slot LIMIT $4::int;
-- name: copy_last_throughput
SELECT c.queue, c.kind, x.slot FROM pawl.throughput x JOIN pawl.class c ON c.id = x.class
ORDER BY c.queue DESC, c.kind DESC, x.slot DESC LIMIT 1;
-- name: copy_put_throughput
INSERT INTO pawl.throughput (class, slot, n_done, n_skipped, n_failed, n_retried, n_lost, backoff_us,
                             retry_after_us)
SELECT pawl.name_id(u.queue, u.kind), u.slot, u.done, u.skipped, u.failed, u.retried, u.lost,
       u.backoff, u.after
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
     u (queue, kind, slot, done, skipped, failed, retried, lost, backoff, after)
ON CONFLICT DO NOTHING;

-- A snapshot that waits for the other store now and then, and whose pages are found by their keys whatever the
-- planner believes of tables that have just been filled.
-- name: copy_settings
SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true);
-- Who the store is and how far it has come. Events can appear below the highest: they are counted.
-- name: copy_facts
SELECT 'postgres:' || (SELECT value FROM pawl.meta WHERE key = 'store_id'),
       'event-' || coalesce(e.last, 0) || '-' || e.n,
       (SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM pawl.job_id),
       EXISTS (SELECT 1 FROM pawl.attempt WHERE log_bytes > 0),
       (SELECT count(*) FROM pawl.job WHERE state = 3),
       (SELECT count(*) FROM pawl.job j JOIN pawl.session s ON s.id = j.owner
        WHERE j.state = 3 AND s.ended_at IS NULL AND s.lease_until > pawl.now_us()),
       (SELECT count(*) FROM pawl.session s WHERE s.ended_at IS NULL AND s.lease_until > pawl.now_us()),
       EXISTS (SELECT 1 FROM pawl.body) OR EXISTS (SELECT 1 FROM pawl.job_key) OR e.n > 0
       OR EXISTS (SELECT 1 FROM pawl.session) OR EXISTS (SELECT 1 FROM pawl.queue)
       OR EXISTS (SELECT 1 FROM pawl.limits) OR EXISTS (SELECT 1 FROM pawl.artifact)
       OR EXISTS (SELECT 1 FROM pawl.memory),
       (SELECT value FROM pawl.meta WHERE key = 'copy')
FROM (SELECT max(id) AS last, count(*) AS n FROM pawl.event) e;
-- name: copy_mark_set
INSERT INTO pawl.meta (key, value) VALUES ('copy', $1::text)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
-- name: copy_mark_drop
DELETE FROM pawl.meta WHERE key = 'copy' RETURNING key;
-- name: copy_wipe
WITH a AS (DELETE FROM pawl.session), b AS (DELETE FROM pawl.class), c AS (DELETE FROM pawl.queue),
     d AS (DELETE FROM pawl.lane), e AS (DELETE FROM pawl.wake), f AS (DELETE FROM pawl.body),
     g AS (DELETE FROM pawl.job), h AS (DELETE FROM pawl.settled), i AS (DELETE FROM pawl.cancel_ask),
     j AS (DELETE FROM pawl.revoked), k AS (DELETE FROM pawl.progress), l AS (DELETE FROM pawl.poison),
     m AS (DELETE FROM pawl.result), n AS (DELETE FROM pawl.job_key), o AS (DELETE FROM pawl.attempt),
     p AS (DELETE FROM pawl.event), q AS (DELETE FROM pawl.metric), r AS (DELETE FROM pawl.throughput),
     s AS (DELETE FROM pawl.limits), t AS (DELETE FROM pawl.gate), u AS (DELETE FROM pawl.permit),
     v AS (DELETE FROM pawl.duty), x AS (DELETE FROM pawl.artifact), y AS (DELETE FROM pawl.fetch),
     z AS (DELETE FROM pawl.memory), aa AS (DELETE FROM pawl.admitted),
     w AS (DELETE FROM pawl.meta WHERE key IN ('aging', 'claim_order', 'policy_text')
                                        OR key LIKE 'attempts\_pruned\_%')
DELETE FROM pawl.delta;

-- name: copy_sequences
SELECT setval('pawl.job_id', greatest($1::bigint - 1, 1), $1::bigint > 1), setval('pawl.event_id', greatest(e, 1), e > 0),
       setval('pawl.session_id', greatest(s, 1), s > 0), setval('pawl.artifact_id', greatest(a, 1), a > 0)
FROM (SELECT coalesce((SELECT max(id) FROM pawl.event), 0), coalesce((SELECT max(id) FROM pawl.session), 0),
             coalesce((SELECT max(id) FROM pawl.artifact), 0)) m (e, s, a);
-- name: copy_lanes
INSERT INTO pawl.lane AS l (id, class, queue, kind, host, rank, head, head_at)
SELECT n.id, pawl.name_id(n.queue, n.kind), n.queue, n.kind, n.host, coalesce(b.rank, 0), b.id,
       pawl.now_us()
FROM (SELECT pawl.name_id(d.queue, d.kind, d.host) AS id, d.queue, d.kind, d.host
      FROM (SELECT DISTINCT queue, kind, host FROM pawl.body) d) n
     LEFT JOIN LATERAL (SELECT j.rank, j.id FROM pawl.job j WHERE j.lane = n.id AND j.state = 1
                        ORDER BY j.rank, j.id LIMIT 1) b ON true
ON CONFLICT (id) DO UPDATE SET rank = excluded.rank, head = excluded.head, head_at = excluded.head_at;
-- name: copy_counts
INSERT INTO pawl.class AS c (id, queue, kind, n_blocked, n_queued, n_waiting, n_running, n_done,
                             n_skipped, n_failed, n_cancelled, n_retries, first_at)
SELECT pawl.name_id(b.queue, b.kind), b.queue, b.kind, count(*) FILTER (WHERE j.state = 0),
       count(*) FILTER (WHERE j.state IN (-1, 1)), count(*) FILTER (WHERE j.state = 2),
       count(*) FILTER (WHERE j.state = 3), count(*) FILTER (WHERE j.state = 4),
       count(*) FILTER (WHERE j.state = 5), count(*) FILTER (WHERE j.state = 6),
       count(*) FILTER (WHERE j.state = 7), 0, min(b.created_at)
FROM (SELECT id, state FROM pawl.job UNION ALL SELECT id, state FROM pawl.settled) j
     JOIN pawl.body b ON b.id = j.id
GROUP BY b.queue, b.kind
ON CONFLICT (id) DO UPDATE SET n_blocked = excluded.n_blocked, n_queued = excluded.n_queued,
    n_waiting = excluded.n_waiting, n_running = excluded.n_running, n_done = excluded.n_done,
    n_skipped = excluded.n_skipped, n_failed = excluded.n_failed, n_cancelled = excluded.n_cancelled;
-- name: copy_policy
INSERT INTO pawl.meta (key, value) VALUES ('aging', '0'), ('claim_order', '0'), ('policy_text', '')
ON CONFLICT DO NOTHING;
-- name: copy_locks
INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
SELECT DISTINCT 0, '', '', '', 0, 0, lock FROM pawl.job WHERE state = -1;
-- name: copy_running
SELECT id, fence FROM pawl.job WHERE state = 3 ORDER BY id LIMIT $1::int;
-- name: copy_sessions
SELECT id FROM pawl.session WHERE ended_at IS NULL ORDER BY id;
