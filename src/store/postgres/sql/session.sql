-- Sessions, sweeping, pauses.

-- name: session_insert
INSERT INTO pawl.session (uid, name, host, pid, started_at, renewed_at, lease_until, slots, pools, filter)
SELECT $1::text, $2::text, $3::text, $4::int, t, t, t + $5::bigint, $6::int, $7::text, $8::text
FROM pawl.now_us() t RETURNING id;
-- name: session_renew
SELECT command, cancels, revoked_jobs, revoked_fences
FROM pawl.renew($1::bigint, $2::bigint, $3::int, $4::bigint[], $5::bigint[], $6::text[], $7::text[],
                $8::bigint[], $9::text);
-- name: session_end
UPDATE pawl.session SET ended_at = pawl.now_us(), running = 0, lost = $2::boolean
WHERE id = $1::bigint AND ended_at IS NULL RETURNING id;
-- name: metric_fold
INSERT INTO pawl.metric AS m (session, name, value)
SELECT 0, name, value FROM pawl.metric WHERE session = $1::bigint ORDER BY name
ON CONFLICT (session, name) DO UPDATE SET value = m.value + excluded.value;
-- name: metric_drop
DELETE FROM pawl.metric WHERE session = $1::bigint;
-- name: revoked_drop
DELETE FROM pawl.revoked WHERE session = $1::bigint;
-- name: session_ask
WITH asked AS (
    UPDATE pawl.session SET command = $2::int
    WHERE ended_at IS NULL AND ($1::text IS NULL OR name = $1::text OR uid = $1::text) RETURNING id
)
SELECT id FROM asked ORDER BY id;
-- name: owner_jobs
SELECT j.id, j.fence, j.lost,
       EXISTS (SELECT 1 FROM pawl.cancel_ask k WHERE k.job = j.id AND k.fence = j.fence)
FROM pawl.job j WHERE j.state = 3 AND j.owner = $1::bigint ORDER BY j.id LIMIT $2::int;

-- Sessions that have not ended, with what decides whether they are dead. The lock keeps a claim of
-- theirs from going on while they are swept; whose claim is under way is not dead.
-- name: sessions_now
SELECT id, name, lease_until, renewed_at, started_at, pawl.now_us() AS now
FROM pawl.session WHERE ended_at IS NULL ORDER BY id;
-- name: session_dead
SELECT 1 FROM pawl.session
WHERE id = $1::bigint AND ended_at IS NULL AND lease_until <= pawl.now_us() FOR UPDATE SKIP LOCKED;
-- name: orphan_owners
SELECT DISTINCT j.owner FROM pawl.job j
WHERE j.state = 3 AND NOT EXISTS
    (SELECT 1 FROM pawl.session s WHERE s.id = j.owner AND s.ended_at IS NULL) LIMIT $1::int;
-- name: poison_insert
INSERT INTO pawl.poison (job) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING;
-- name: cancel_sweep
DELETE FROM pawl.cancel_ask k WHERE NOT EXISTS
    (SELECT 1 FROM pawl.job j WHERE j.id = k.job AND j.fence = k.fence AND j.state = 3);
-- name: progress_sweep
DELETE FROM pawl.progress p WHERE NOT EXISTS
    (SELECT 1 FROM pawl.job j WHERE j.id = p.job AND j.fence = p.fence AND j.state = 3);
-- name: fold_deltas
SELECT pawl.fold_deltas($1::int);
-- name: fold_wakes
SELECT busy FROM pawl.fold_wakes($1::bigint);

-- name: queue_pause
INSERT INTO pawl.queue AS q (name, paused_at)
SELECT $1::text, CASE WHEN $2::boolean THEN pawl.now_us() END
WHERE $2::boolean OR EXISTS (SELECT 1 FROM pawl.queue WHERE name = $1::text AND paused_at IS NOT NULL)
ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at
WHERE (q.paused_at IS NULL) <> (excluded.paused_at IS NULL) RETURNING name;
