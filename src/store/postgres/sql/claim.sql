-- Leases: what is not a function of the schema is here.

-- name: claim
SELECT * FROM pawl.claim($1::bigint, $2::text[], $3::int[], $4::int[], $5::int[], $6::text[],
                         $7::bigint, $8::bigint);
-- name: settle
SELECT * FROM pawl.settle($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::int[], $6::int[],
                          $7::int[], $8::int[], $9::bigint[], $10::bigint[], $11::bigint[],
                          $12::bigint[], $13::text[], $14::text[], $15::int[], $16::bigint[],
                          $17::bigint, $18::text[]);
-- name: admit
SELECT outcome, wait, gate FROM pawl.admit($1::bigint, $2::bigint, $3::text);
-- name: pace
SELECT pawl.pace($1::bigint, $2::bigint, $3::text, $4::bigint);
-- name: session_lock
SELECT 1 FROM pawl.session WHERE id = $1::bigint FOR UPDATE;
-- name: held
SELECT j.id, j.fence, j.rank + j.aged, j.attempt, j.transient, j.lost, j.available_at, j.lane, 0, b.queue,
       b.kind, nullif(b.host, ''), b.key, b.payload, b.created_at, b.max_attempts, b.timeout_us,
       j.claimed_at, -1::bigint
FROM pawl.job j JOIN pawl.body b ON b.id = j.id WHERE j.state = 3 AND j.owner = $1::bigint ORDER BY j.id;
