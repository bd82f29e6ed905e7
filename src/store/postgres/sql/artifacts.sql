-- What jobs left behind: artifacts and records of fetches; and what workers remember.

-- define: artifact
a.id, a.job, a.fence, a.created_at, a.name, a.type, a.sha256, a.size, a.stored, a.codec::int AS codec,
       a.place, a.queue, f.url, f.status

-- define: passing
LEFT JOIN LATERAL (SELECT r.url, r.status FROM pawl.fetch r
                        WHERE r.job = a.job AND r.fence = a.fence AND r.artifact = a.id OFFSET 0) f
          ON true
     WHERE ($1::bigint = 0 OR a.job = $1::bigint) AND ($2::text IS NULL OR a.queue = $2::text)
       AND ($3::text IS NULL OR a.name = $3::text)
       AND (NOT $4::boolean OR NOT EXISTS (SELECT 1 FROM pawl.artifact n
                                           WHERE n.job = a.job AND n.name = a.name
                                             AND n.fence > a.fence))

-- What settles left behind whose gate was passed: $1 to $9 the artifacts, $10 to $34 the fetches.
-- name: keep
SELECT pawl.keep($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::bigint[],
                 $7::bigint[], $8::int[], $9::text[],
                 $10::bigint[], $11::bigint[], $12::text[], $13::int[], $14::bigint[], $15::bigint[],
                 $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[],
                 $21::bytea[], $22::bytea[], $23::text[], $24::text[], $25::text[], $26::text[],
                 $27::text[], $28::text[], $29::text[], $30::text[], $31::text[], $32::text[],
                 $33::text[], $34::text[]);

-- A page by id: the last id and how many were looked at, with every row that passes.
-- name: artifacts_by_id
WITH page AS MATERIALIZED (
    SELECT * FROM pawl.artifact WHERE id > $5::bigint ORDER BY id LIMIT $6::bigint
)
SELECT n.last, n.n, x.*
FROM (SELECT max(id) AS last, count(*) AS n FROM page) n
     LEFT JOIN (SELECT @artifact FROM page a @passing) x ON true
ORDER BY x.id;
-- name: artifacts_of_job
WITH page AS MATERIALIZED (
    SELECT * FROM pawl.artifact WHERE job = $1::bigint AND id > $5::bigint ORDER BY id LIMIT $6::bigint
)
SELECT n.last, n.n, x.*
FROM (SELECT max(id) AS last, count(*) AS n FROM page) n
     LEFT JOIN (SELECT @artifact FROM page a @passing) x ON true
ORDER BY x.id;

-- Rows whose bytes are gone. The jobs first, as they are locked before what belongs to them.
-- name: lost_jobs
SELECT DISTINCT job FROM pawl.artifact WHERE id = ANY ($1::bigint[]) ORDER BY job;
-- The record of a fetch stays as long as its attempt does.
-- name: artifacts_lost
WITH t AS MATERIALIZED (SELECT pawl.now_us() AS now), old AS MATERIALIZED (
    SELECT id FROM pawl.artifact WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE
), gone AS (
    DELETE FROM pawl.artifact WHERE id = ANY (ARRAY(SELECT id FROM old))
    RETURNING id, job, fence, name, sha256
), parted AS (
    UPDATE pawl.fetch f SET artifact = NULL FROM gone g
    WHERE f.job = g.job AND f.fence = g.fence AND f.artifact = g.id
      AND EXISTS (SELECT 1 FROM pawl.attempt a WHERE a.job = g.job AND a.fence = g.fence)
), left_over AS (
    DELETE FROM pawl.fetch f USING gone g
    WHERE f.job = g.job AND f.fence = g.fence AND f.artifact = g.id
      AND NOT EXISTS (SELECT 1 FROM pawl.attempt a WHERE a.job = g.job AND a.fence = g.fence)
), told AS (
    INSERT INTO pawl.event (at, type, job, fence, detail)
    SELECT t.now, 31, g.job, g.fence,
           '{"name":"' || g.name || '","sha256":"' || encode(g.sha256, 'hex') || '"}'
    FROM gone g, t ORDER BY g.id
)
SELECT count(*) FROM gone;

-- name: artifacts_move
WITH moved AS (
    UPDATE pawl.artifact a SET place = u.to_place, stored = u.stored, codec = u.codec::smallint
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::int[])
         u (id, from_place, to_place, stored, codec)
    WHERE a.id = u.id AND a.place = u.from_place
    RETURNING 1
)
SELECT count(*) FROM moved;

-- Ids rise with the time of writing, so the oldest are the first.
-- name: artifacts_expire
WITH page AS MATERIALIZED (
    SELECT id, created_at FROM pawl.artifact ORDER BY id LIMIT $2::int
), old AS MATERIALIZED (
    SELECT id FROM pawl.artifact
    WHERE id = ANY (ARRAY(SELECT id FROM page WHERE created_at < $1::bigint)) ORDER BY id FOR UPDATE
), gone AS (
    DELETE FROM pawl.artifact WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id, job, fence
), parted AS (
    UPDATE pawl.fetch f SET artifact = NULL FROM gone g
    WHERE f.job = g.job AND f.fence = g.fence AND f.artifact = g.id
      AND EXISTS (SELECT 1 FROM pawl.attempt a WHERE a.job = g.job AND a.fence = g.fence)
), left_over AS (
    DELETE FROM pawl.fetch f USING gone g
    WHERE f.job = g.job AND f.fence = g.fence AND f.artifact = g.id
      AND NOT EXISTS (SELECT 1 FROM pawl.attempt a WHERE a.job = g.job AND a.fence = g.fence)
)
SELECT count(*) FROM gone;

-- name: fetches
SELECT f.fence, f.at, f.artifact, f.kept, f.status, f.wire_bytes, f.body_bytes, f.dns_us, f.connect_us,
       f.tls_us, f.first_byte_us, f.total_us, f.wire_sha256, f.body_sha256, f.method, f.variant,
       f.address, f.http_version, f.content_type, f.encoding, f.last_modified, f.etag, f.url,
       f.final_url, f.headers, f.redirects
FROM pawl.fetch f WHERE f.job = $1::bigint AND f.fence < $2::bigint ORDER BY f.fence DESC LIMIT $3::int;
-- A 304 that nobody asked for is a failure (outcomes failed and retry).
-- name: fetch_totals
SELECT count(*) FILTER (WHERE kept), count(*) FILTER (WHERE same), count(*) FILTER (WHERE NOT kept AND NOT same),
       coalesce(sum(wire_bytes), 0)::bigint, coalesce(sum(body_bytes), 0)::bigint
FROM (SELECT f.kept, f.wire_bytes, f.body_bytes,
             CASE WHEN f.kept OR f.status <> 304 THEN false ELSE NOT EXISTS
                 (SELECT 1 FROM pawl.attempt a
                  WHERE a.job = f.job AND a.fence = f.fence AND a.outcome IN (2, 3)) END AS same
      FROM pawl.fetch f WHERE f.at >= $1::bigint AND ($2::text IS NULL OR f.queue = $2::text)) x;

-- Some of those whose time is over go aside, but never the one that is being written.
-- name: memory_set
WITH t AS MATERIALIZED (SELECT pawl.now_us() AS now), old AS (
    DELETE FROM pawl.memory WHERE key = ANY (ARRAY
        (SELECT m.key FROM pawl.memory m
         WHERE m.expires <= (SELECT now FROM t) AND m.key <> $1::text
         ORDER BY m.expires LIMIT 10 FOR UPDATE SKIP LOCKED))
)
INSERT INTO pawl.memory (key, value, expires) SELECT $1::text, $2::bytea, t.now + $3::bigint FROM t
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires;
-- name: memory_forget
DELETE FROM pawl.memory WHERE key = $1::text;
-- name: memory_get
SELECT value FROM pawl.memory WHERE key = $1::text AND expires > (SELECT pawl.now_us());
-- name: memory_drop
DELETE FROM pawl.memory WHERE key = ANY (ARRAY
    (SELECT key FROM pawl.memory WHERE expires <= (SELECT pawl.now_us())
     ORDER BY expires LIMIT 5000 FOR UPDATE SKIP LOCKED));
