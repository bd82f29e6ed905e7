-- Looking at jobs and events. Both are walked by id in pages of bounded size: the filters are tested
-- on what a page holds, so no page costs more than its rows, and `last` and `n` of a page say how far
-- it came even where nothing passed. Filters: $1 queue, $2 kind, $3 host, $4 states, $5 since,
-- $6 error, $7 and $8 its fingerprint. $9 with payload and result.

-- define: columns
j.id, -j.rank, j.state::int, j.attempt, j.transient, j.lost, j.fence,
       CASE j.state WHEN 3 THEN (SELECT s.name FROM pawl.session s WHERE s.id = j.owner) END, j.claimed_at,
       CASE j.state WHEN 3 THEN (SELECT s.lease_until FROM pawl.session s WHERE s.id = j.owner) END,
       j.available_at, j.finished_at, j.reason::int,
       CASE j.state WHEN 3 THEN
           (SELECT true FROM pawl.cancel_ask k WHERE k.job = j.id AND k.fence = j.fence) END,
       CASE j.state WHEN 3 THEN
           (SELECT p.progress FROM pawl.progress p WHERE p.job = j.id AND p.fence = j.fence) END,
       b.lock, b.key, b.created_at, b.max_attempts, b.timeout_us, b.parent, b.queue, b.kind,
       nullif(b.host, ''), a.class::int, a.error, a.exit_code

-- define: page
w AS MATERIALIZED (
    SELECT x.* FROM (
        (@hot WHERE id > $10::bigint AND $4::bigint & 15 <> 0 ORDER BY id LIMIT $11::bigint)
        UNION ALL
        (@ended WHERE id > $10::bigint AND $4::bigint & 240 <> 0 ORDER BY id LIMIT $11::bigint)) x
    ORDER BY x.id LIMIT $11::bigint
)

-- define: one
(@hot WHERE id = u.id
      UNION ALL
      @ended WHERE id = u.id OFFSET 0)

-- A job whose lock is not free is queued, and what its priority gained by waiting is not shown.
-- define: hot
SELECT id, rank + aged AS rank, @shown AS state, attempt, transient, lost, fence, owner, claimed_at, available_at,
               NULL::bigint AS finished_at, reason
        FROM pawl.job

-- define: shown
CASE state WHEN -1 THEN 1 ELSE state END

-- define: ended
SELECT id, rank, state, attempt, transient, lost, fence, NULL, claimed_at, available_at,
               finished_at, reason
        FROM pawl.settled

-- define: rest
CROSS JOIN LATERAL (SELECT * FROM pawl.body WHERE body.id = j.id OFFSET 0) b
     LEFT JOIN LATERAL (SELECT * FROM pawl.attempt WHERE attempt.job = j.id AND attempt.fence = j.fence
                        OFFSET 0) a ON true

-- define: filters
($1::text IS NULL OR b.queue = $1::text) AND ($2::text IS NULL OR b.kind = $2::text)
  AND ($3::text IS NULL OR nullif(b.host, '') = $3::text) AND ($4::bigint >> j.state) & 1 = 1
  AND ($5::bigint IS NULL OR b.created_at >= $5::bigint)
  AND ($6::text IS NULL OR strpos(a.error, $6::text) > 0)
  AND ($8::bigint = 0 OR a.fingerprint BETWEEN $7::bigint AND $8::bigint)

-- define: ids
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM (SELECT id FROM

-- define: above
AND id + 0 > $1::bigint OFFSET 0) x
    ORDER BY id LIMIT $2::bigint) y;

-- Events that pass: $1 job, $2 types, $3 queue, $4 since, $5 only of transactions below this one.
-- define: passing
(SELECT * FROM w WHERE ($1::bigint = 0 OR job = $1::bigint)
           AND ($2::bigint = 0 OR ($2::bigint >> type) & 1 = 1) AND at >= $4::bigint
           AND ($5::bigint IS NULL OR xid < $5::bigint::text::xid8))

-- define: body
(SELECT queue, kind, key FROM pawl.body WHERE body.id = e.job OFFSET 0) b

-- define: event
e.id, e.at, e.type::int, e.job, e.fence, b.queue, b.kind, b.key,
       (SELECT s.name FROM pawl.session s WHERE s.id = e.session), e.detail

-- Long walks want indexes in order, whatever the planner thinks of a table it has not analysed.
-- name: by_index
SELECT set_config(x, 'off', true)
FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']) x;

-- name: job_get
SELECT @columns, b.payload, (SELECT r.result FROM pawl.result r WHERE r.job = j.id), a.fingerprint
FROM (VALUES ($1::bigint)) u (id) CROSS JOIN LATERAL @one j @rest;
-- name: list_page
WITH @page
SELECT @columns, CASE WHEN $9::boolean THEN b.payload END,
       CASE WHEN $9::boolean THEN (SELECT r.result FROM pawl.result r WHERE r.job = j.id) END, a.fingerprint,
       e.last, e.n
FROM (SELECT max(id) AS last, count(*) AS n FROM w) e
     LEFT JOIN (w j @rest) ON @filters
ORDER BY j.id;
-- name: count_page
WITH @page
SELECT (SELECT count(*) FROM w j @rest WHERE @filters), max(id), count(*), $9::boolean FROM w;
-- name: list_ids
SELECT @columns, CASE WHEN $9::boolean THEN b.payload END,
       CASE WHEN $9::boolean THEN (SELECT r.result FROM pawl.result r WHERE r.job = j.id) END, a.fingerprint
FROM unnest($10::bigint[]) u (id) CROSS JOIN LATERAL @one j @rest
WHERE @filters ORDER BY j.id;

-- The ids of all jobs of one state, by the index that has just these: $1 after, $2 limit or null.
-- name: ids_queued
@ids pawl.job WHERE state = 1 AND id + 0 > $1::bigint
    UNION ALL SELECT id FROM pawl.job WHERE state = -1 @above
-- name: ids_waiting
@ids pawl.job WHERE state = 2 @above
-- name: ids_running
@ids pawl.job WHERE state = 3 @above
-- name: ids_done
@ids pawl.settled WHERE state = 4 @above
-- name: ids_skipped
@ids pawl.settled WHERE state = 5 @above
-- name: ids_failed
@ids pawl.settled WHERE state = 6 @above
-- name: ids_cancelled
@ids pawl.settled WHERE state = 7 @above
-- Ids by number alone: $1 after, $2 limit, $3 states.
-- name: ids_walk
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM
    ((SELECT id FROM pawl.job
      WHERE id > $1::bigint AND $3::bigint & 15 <> 0 AND ($3::bigint >> @shown) & 1 = 1
      ORDER BY id LIMIT $2::bigint)
     UNION ALL
     (SELECT id FROM pawl.settled
      WHERE id > $1::bigint AND $3::bigint & 240 <> 0 AND ($3::bigint >> state) & 1 = 1
      ORDER BY id LIMIT $2::bigint)) x
    ORDER BY id LIMIT $2::bigint) y;
-- A key in its queue, or ($2 null) in every queue there ever was.
-- name: ids_of_key
SELECT array_agg(k.id ORDER BY k.id)
FROM (SELECT $2::text AS queue WHERE $2::text IS NOT NULL
      UNION SELECT queue FROM pawl.class WHERE $2::text IS NULL
      UNION SELECT queue FROM pawl.delta WHERE $2::text IS NULL) q
     JOIN pawl.job_key k ON k.digest = pawl.key_digest(q.queue, $1::text) AND k.expires IS NULL;
-- name: attempts
SELECT a.attempt, a.fence, (SELECT s.name FROM pawl.session s WHERE s.id = a.session), a.started_at,
       a.finished_at, a.outcome::int, a.class::int, a.error, a.exit_code, a.log_bytes
FROM pawl.attempt a WHERE a.job = $1::bigint ORDER BY a.fence;

-- name: status_running
SELECT @columns, NULL, NULL, a.fingerprint
FROM (@hot WHERE state = 3 ORDER BY owner, id LIMIT $1::bigint) j @rest
ORDER BY j.claimed_at, j.id;
-- name: status_last
SELECT @columns, NULL, NULL, a.fingerprint
FROM (SELECT *, NULL::bigint AS owner FROM pawl.settled WHERE state = $1::int
      ORDER BY finished_at DESC, id DESC LIMIT 5) j @rest
ORDER BY j.finished_at DESC, j.id DESC;

-- Events. Below the last of event_bounds no transaction can add one any more.
-- name: event_bounds
SELECT (SELECT min(id) FROM pawl.event), (SELECT max(id) FROM pawl.event),
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
-- name: event_at
SELECT id, at FROM pawl.event WHERE id >= $1::bigint ORDER BY id LIMIT 1;
-- name: job_created
SELECT created_at FROM pawl.body WHERE id = $1::bigint;
-- name: events_page
WITH w AS MATERIALIZED (
    SELECT * FROM pawl.event WHERE id > $6::bigint AND id <= $7::bigint ORDER BY id LIMIT $8::bigint
)
SELECT @event, x.last, x.n
FROM (SELECT max(id) AS last, count(*) AS n FROM w) x
     LEFT JOIN (@passing e LEFT JOIN LATERAL @body ON true)
     ON $3::text IS NULL OR b.queue = $3::text
ORDER BY e.id;
-- name: events_back
WITH w AS MATERIALIZED (
    SELECT * FROM pawl.event WHERE id > $6::bigint AND id <= $7::bigint ORDER BY id DESC
    LIMIT $8::bigint
)
SELECT (SELECT array_agg(e.id ORDER BY e.id DESC)
        FROM @passing e LEFT JOIN LATERAL @body ON true
        WHERE $3::text IS NULL OR b.queue = $3::text), min(id), count(*)
FROM w;
-- By transaction, for followers: $6 the first, $7 in it ids above; each page in the order of ids.
-- name: events_follow
WITH w AS MATERIALIZED (
    SELECT * FROM pawl.event
    WHERE xid >= $6::bigint::text::xid8 AND xid < $5::bigint::text::xid8
      AND (xid > $6::bigint::text::xid8 OR id > $7::bigint)
    ORDER BY xid, id LIMIT $8::bigint
), z AS (
    SELECT xid::text::bigint AS xid, id FROM w ORDER BY w.xid DESC, id DESC LIMIT 1
)
SELECT @event, x.xid, x.last, x.n
FROM (SELECT count(*) AS n, (SELECT xid FROM z) AS xid, (SELECT id FROM z) AS last FROM w) x
     LEFT JOIN (@passing e LEFT JOIN LATERAL @body ON true)
     ON $3::text IS NULL OR b.queue = $3::text
ORDER BY e.id;
-- The same for types out of EVENTS_RARE, by their index.
-- name: events_follow_rare
WITH w AS MATERIALIZED (
    SELECT * FROM pawl.event
    WHERE type IN (5, 9, 17, 22, 23, 24, 25, 26, 27, 28, 29, 30)
      AND xid >= $6::bigint::text::xid8 AND xid < $5::bigint::text::xid8
      AND (xid > $6::bigint::text::xid8 OR id > $7::bigint)
    ORDER BY xid, id LIMIT $8::bigint
), z AS (
    SELECT xid::text::bigint AS xid, id FROM w ORDER BY w.xid DESC, id DESC LIMIT 1
)
SELECT @event, x.xid, x.last, x.n
FROM (SELECT count(*) AS n, (SELECT xid FROM z) AS xid, (SELECT id FROM z) AS last FROM w) x
     LEFT JOIN (@passing e LEFT JOIN LATERAL @body ON true)
     ON $3::text IS NULL OR b.queue = $3::text
ORDER BY e.id;
