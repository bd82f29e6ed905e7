-- Why a job does not run: each part of it in the snapshot of one read.

-- define: holders
SELECT j.id, j.fence, j.claimed_at
            FROM (SELECT job FROM pawl.permit WHERE permit.gate = g.id) p CROSS JOIN LATERAL
                 (SELECT id, fence, claimed_at FROM pawl.job WHERE job.id = p.job OFFSET 0) j
            ORDER BY j.claimed_at, j.id LIMIT 5

-- name: explain_pause
SELECT paused_at FROM pawl.queue WHERE name = $1::text AND paused_at IS NOT NULL;
-- Gates by id; those that have no row yet are as new.
-- name: explain_gates
SELECT g.id, g.value, g.tat, g.interval_us, g.cut_at, g.raised_at, g.held_until, g.held_at, g.held_n,
       g.held_asked, g.breaker::int, g.since, g.until, g.failures, g.opens, g.epoch, g.probe_job,
       g.probe_fence, g.window_at, g.window_calls, g.window_failures, g.why,
       (SELECT count(*) FROM pawl.permit p WHERE p.gate = g.id),
       (SELECT count(*) FROM pawl.lane x WHERE x.parked = g.id), g.pace_us, g.limit_id, pawl.now_us(),
       ARRAY(SELECT h.id FROM (@holders) h ORDER BY h.claimed_at, h.id),
       ARRAY(SELECT h.fence FROM (@holders) h ORDER BY h.claimed_at, h.id)
FROM unnest($1::bigint[]) WITH ORDINALITY u (id, o)
     LEFT JOIN LATERAL (SELECT * FROM pawl.gate WHERE gate.id = u.id OFFSET 0) g ON true
ORDER BY u.o;

-- Who holds how many of which kind, and of $1 itself.
-- name: explain_held
SELECT j.owner, l.kind, count(*), max((j.id = $1::bigint)::int)
FROM (SELECT owner, lane, id FROM pawl.job WHERE state = 3 OFFSET 0) j CROSS JOIN LATERAL
     (SELECT kind FROM pawl.lane WHERE lane.id = j.lane OFFSET 0) l
GROUP BY j.owner, l.kind ORDER BY j.owner, l.kind;

-- How many ready jobs of the queue come before (rank, id), 100 000 at most. Lanes that only a wake tells
-- of count too.
-- name: explain_position
SELECT j.state::int,
       (SELECT count(*)
        FROM (SELECT 1
              FROM (SELECT id FROM pawl.lane WHERE queue = $2::text AND head IS NOT NULL
                    UNION SELECT lane FROM pawl.wake WHERE queue = $2::text AND gate IS NULL AND lock IS NULL) l
                   CROSS JOIN LATERAL
                   (SELECT 1 FROM pawl.job x
                    WHERE x.lane = l.id AND x.state = 1 AND (x.rank, x.id) < (j.rank, j.id)) x
              LIMIT 100000) n)
FROM pawl.job j WHERE j.id = $1::bigint;
