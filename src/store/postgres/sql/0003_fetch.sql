-- Schema 3: artifacts, records of fetches, what is remembered for a time, the pace of a gate. What each
-- is for stands in 0003_fetch.sql of SQLite; here only what differs.

CREATE SEQUENCE pawl.artifact_id MAXVALUE 9007199254740991;
CREATE TABLE pawl.artifact (
    id         bigint PRIMARY KEY DEFAULT nextval('pawl.artifact_id'),
    job        bigint NOT NULL,
    fence      bigint NOT NULL,
    size       bigint NOT NULL,
    stored     bigint NOT NULL,
    created_at bigint NOT NULL,
    codec      smallint NOT NULL,
    sha256     bytea NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    place      text COLLATE "C" NOT NULL,
    type       text COLLATE "C"
);
CREATE UNIQUE INDEX artifact_job ON pawl.artifact (job, name, fence);
CREATE INDEX artifact_bytes ON pawl.artifact (sha256);

CREATE TABLE pawl.fetch (
    job           bigint NOT NULL,
    fence         bigint NOT NULL,
    at            bigint NOT NULL,
    wire_bytes    bigint NOT NULL,
    body_bytes    bigint NOT NULL,
    artifact      bigint,
    dns_us        bigint NOT NULL,
    connect_us    bigint NOT NULL,
    tls_us        bigint NOT NULL,
    first_byte_us bigint NOT NULL,
    total_us      bigint NOT NULL,
    status        integer NOT NULL,
    kept          boolean NOT NULL,
    wire_sha256   bytea,
    body_sha256   bytea,
    queue         text COLLATE "C" NOT NULL,
    method        text COLLATE "C",
    variant       text COLLATE "C",
    address       text COLLATE "C",
    http_version  text COLLATE "C",
    content_type  text COLLATE "C",
    encoding      text COLLATE "C",
    last_modified text COLLATE "C",
    etag          text COLLATE "C",
    url           text COLLATE "C" NOT NULL,
    final_url     text COLLATE "C",
    headers       text COLLATE "C",
    redirects     text COLLATE "C",
    PRIMARY KEY (job, fence)
);
CREATE INDEX fetch_at ON pawl.fetch (at);

CREATE TABLE pawl.memory (
    key     text COLLATE "C" PRIMARY KEY,
    value   bytea NOT NULL,
    expires bigint NOT NULL
);
CREATE INDEX memory_expires ON pawl.memory (expires);

ALTER TABLE pawl.gate ADD COLUMN pace_us bigint NOT NULL DEFAULT 0;
