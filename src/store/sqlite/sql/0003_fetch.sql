-- Schema 3: artifacts, records of fetches, what is remembered for a time, the pace of a gate.

-- Bytes that a job left in the lake, complete and durable there before the row is written (I10). They
-- outlive their job, so they name its queue. No id is given twice, since who repairs names rows by their
-- ids. Of one job and name the row with the highest fence is the newest, so one index says both.
CREATE TABLE artifact (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    queue      INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    stored     INTEGER NOT NULL,
    codec      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    sha256     BLOB NOT NULL,
    name       TEXT NOT NULL,
    place      TEXT NOT NULL,
    type       TEXT
);
CREATE UNIQUE INDEX artifact_job ON artifact (job, name, fence);
CREATE INDEX artifact_bytes ON artifact (sha256);

-- One row for each attempt that got as far as asking. A row has an artifact or an attempt: it goes with
-- its attempt, unless it tells where kept bytes came from. kept: it had an artifact, be it lost since.
-- What is added up comes first, what may be long last.
CREATE TABLE fetch (
    id            INTEGER PRIMARY KEY,
    job           INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    queue         INTEGER NOT NULL,
    kept          INTEGER NOT NULL,
    status        INTEGER NOT NULL,
    wire_bytes    INTEGER NOT NULL,
    body_bytes    INTEGER NOT NULL,
    artifact      INTEGER,
    dns_us        INTEGER NOT NULL,
    connect_us    INTEGER NOT NULL,
    tls_us        INTEGER NOT NULL,
    first_byte_us INTEGER NOT NULL,
    total_us      INTEGER NOT NULL,
    wire_sha256   BLOB,
    body_sha256   BLOB,
    method        TEXT,
    variant       TEXT,
    address       TEXT,
    http_version  TEXT,
    content_type  TEXT,
    encoding      TEXT,
    last_modified TEXT,
    etag          TEXT,
    url           TEXT NOT NULL,
    final_url     TEXT,
    headers       TEXT,
    redirects     TEXT
);
CREATE UNIQUE INDEX fetch_job ON fetch (job, fence);
CREATE INDEX fetch_at ON fetch (at);

-- What workers know for a time and share.
CREATE TABLE memory (
    key     TEXT PRIMARY KEY,
    value   BLOB NOT NULL,
    expires INTEGER NOT NULL
);
CREATE INDEX memory_expires ON memory (expires);

-- Starts are at least so far apart, because the peer asked for it; 0: as the limit says.
ALTER TABLE gate ADD COLUMN pace_us INTEGER NOT NULL DEFAULT 0;

CREATE VIEW v_artifacts AS
SELECT a.id, a.job, a.fence, q.name AS queue, a.name, a.type, lower(hex(a.sha256)) AS sha256, a.size,
       a.stored, CASE a.codec WHEN 0 THEN 'none' ELSE 'zstd' END AS codec, a.place, a.created_at,
       f.url, nullif(f.status, 0) AS status
FROM artifact a JOIN queue q ON q.id = a.queue
     LEFT JOIN fetch f ON f.job = a.job AND f.fence = a.fence AND f.artifact = a.id;

CREATE VIEW v_fetches AS
SELECT f.job, f.fence, f.at, q.name AS queue, f.url, f.final_url, f.variant, f.method,
       nullif(f.status, 0) AS status, f.content_type, f.encoding, f.etag, f.last_modified, f.headers,
       f.wire_bytes, f.body_bytes,
       CASE WHEN f.wire_sha256 IS NOT NULL THEN lower(hex(f.wire_sha256)) END AS wire_sha256,
       CASE WHEN f.body_sha256 IS NOT NULL THEN lower(hex(f.body_sha256)) END AS body_sha256,
       nullif(f.dns_us, 0) AS dns_us, nullif(f.connect_us, 0) AS connect_us,
       nullif(f.tls_us, 0) AS tls_us, nullif(f.first_byte_us, 0) AS first_byte_us, f.total_us,
       f.address, f.http_version, f.redirects, f.artifact
FROM fetch f JOIN queue q ON q.id = f.queue;
