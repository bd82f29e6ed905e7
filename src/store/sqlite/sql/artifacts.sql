-- What jobs left behind: artifacts and records of fetches; and what workers remember.

-- define: artifact
SELECT a.id, a.job, a.fence, a.created_at, a.name, a.type, a.sha256, a.size, a.stored, a.codec, a.place,
       q.name, f.url, f.status
FROM artifact a

-- ?1 job, ?2 queue, ?3 name, ?4 newest, ?5 after, ?6 limit
-- define: passing
CROSS JOIN queue q ON q.id = a.queue
     LEFT JOIN fetch f ON f.job = a.job AND f.fence = a.fence AND f.artifact = a.id
WHERE (?1 = 0 OR a.job = ?1) AND (?2 IS NULL OR q.name = ?2) AND (?3 IS NULL OR a.name = ?3)
  AND (?4 = 0 OR NOT EXISTS (SELECT 1 FROM artifact n INDEXED BY artifact_job
                             WHERE n.job = a.job AND n.name = a.name AND n.fence > a.fence))
  AND a.id > ?5

-- Of a settle whose gate was passed (I2).
-- name: artifact_insert
INSERT INTO artifact (job, fence, queue, size, stored, codec, created_at, sha256, name, place, type)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING;
-- ?28: the artifact that is its body.
-- name: fetch_insert
INSERT INTO fetch (job, fence, at, queue, kept, status, wire_bytes, body_bytes, dns_us, connect_us,
                   tls_us, first_byte_us, total_us, wire_sha256, body_sha256, method, variant, address,
                   http_version, content_type, encoding, last_modified, etag, url, final_url, headers,
                   redirects, artifact)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
        ?22, ?23, ?24, ?25, ?26, ?27, ?28)
ON CONFLICT DO NOTHING;

-- name: artifacts_by_id
@artifact NOT INDEXED @passing ORDER BY a.id LIMIT ?6;
-- name: artifacts_of_job
@artifact INDEXED BY artifact_job @passing AND a.job = ?1 ORDER BY a.id LIMIT ?6;

-- name: artifact_move
UPDATE artifact SET place = ?3, stored = ?4, codec = ?5 WHERE id = ?1 AND place = ?2;
-- Ids rise with the time of writing, so the oldest are the first.
-- name: artifacts_old
SELECT id, created_at < ?1 FROM artifact ORDER BY id LIMIT ?2;

-- name: artifact_drop
DELETE FROM artifact WHERE id = ?1 RETURNING job, fence, name, sha256;
-- name: fetch_lost
UPDATE fetch SET artifact = NULL WHERE job = ?1 AND fence = ?2 AND artifact = ?3;
-- name: fetch_left_over
DELETE FROM fetch WHERE job = ?1 AND fence = ?2 AND artifact IS NULL
    AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.job = ?1 AND a.fence = ?2);
-- name: prune_fetches
DELETE FROM fetch WHERE job = ?1 AND artifact IS NULL;
-- name: history_fetches
DELETE FROM fetch WHERE job = ?1 AND artifact IS NULL
    AND fence < (SELECT max(a.fence) FROM attempt a WHERE a.job = ?1);

-- name: fetches
SELECT f.fence, f.at, f.artifact, f.kept, f.status, f.wire_bytes, f.body_bytes, f.dns_us, f.connect_us,
       f.tls_us, f.first_byte_us, f.total_us, f.wire_sha256, f.body_sha256, f.method, f.variant,
       f.address, f.http_version, f.content_type, f.encoding, f.last_modified, f.etag, f.url,
       f.final_url, f.headers, f.redirects
FROM fetch f WHERE f.job = ?1 ORDER BY f.fence DESC;
-- A 304 that nobody asked for is a failure (outcomes failed and retry).
-- name: fetch_totals
SELECT ifnull(sum(kept), 0), ifnull(sum(same), 0), count(*) - ifnull(sum(kept), 0) - ifnull(sum(same), 0),
       ifnull(sum(wire_bytes), 0), ifnull(sum(body_bytes), 0)
FROM (SELECT f.kept, f.wire_bytes, f.body_bytes,
             NOT f.kept AND f.status = 304 AND NOT EXISTS
                 (SELECT 1 FROM attempt a
                  WHERE a.job = f.job AND a.fence = f.fence AND a.outcome IN (2, 3)) AS same
      FROM fetch f INDEXED BY fetch_at
      WHERE f.at >= ?1 AND (?2 IS NULL OR f.queue = (SELECT id FROM queue WHERE name = ?2)));

-- name: memory_set
INSERT INTO memory (key, value, expires) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires;
-- name: memory_forget
DELETE FROM memory WHERE key = ?1;
-- name: memory_get
SELECT value FROM memory WHERE key = ?1 AND expires > ?2;
-- name: memory_drop
DELETE FROM memory WHERE rowid IN
    (SELECT rowid FROM memory INDEXED BY memory_expires WHERE expires <= ?1 LIMIT ?2);
