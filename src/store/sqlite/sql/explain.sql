-- Why a job does not run now.

-- name: explain_place
SELECT j.state, j.priority, c.queue, q.paused_at, b.lock
FROM job j CROSS JOIN body b ON b.id = j.id CROSS JOIN lane l ON l.id = j.lane
     CROSS JOIN class c ON c.id = l.class CROSS JOIN queue q ON q.id = c.queue
WHERE j.id = ?1;
-- ?1 queue, ?2 priority, ?3 id, ?4 how far it is worth counting.
-- name: explain_ahead
SELECT count(*) FROM
    (SELECT 1 FROM class c CROSS JOIN lane l ON l.class = c.id
          CROSS JOIN job j INDEXED BY job_ready ON j.lane = l.id
     WHERE c.queue = ?1 AND l.head_id IS NOT NULL AND j.state = 1 AND j.priority > ?2
     UNION ALL
     SELECT 1 FROM class c CROSS JOIN lane l ON l.class = c.id
          CROSS JOIN job j INDEXED BY job_ready ON j.lane = l.id
     WHERE c.queue = ?1 AND l.head_id IS NOT NULL AND j.state = 1 AND j.priority = ?2 AND j.id < ?3
     LIMIT ?4);
-- Who holds how many of which kind, and of ?1 itself.
-- name: explain_held
SELECT j.owner, c.kind, count(*), max(j.id = ?1)
FROM (SELECT owner, lane, id FROM job INDEXED BY job_running WHERE state = 3) j
     CROSS JOIN lane l ON l.id = j.lane CROSS JOIN class c ON c.id = l.class
GROUP BY j.owner, c.kind ORDER BY j.owner, c.kind;
-- name: explain_gate
SELECT g.id, l.name, g.value, l.text, g.why, g.tat, g.interval_us, g.cut_at, g.raised_at, g.held_until, g.held_at,
       g.held_n, g.held_asked, g.breaker, g.since, g.until, g.failures, g.opens, g.epoch,
       g.probe_job, g.probe_fence, g.window_at, g.window_calls, g.window_failures, g.pace_us
FROM limits l CROSS JOIN gate g ON g.limit_id = l.id WHERE l.name = ?1 AND g.value = ?2;
-- name: explain_holders
SELECT j.id, j.fence FROM permit p CROSS JOIN job j ON j.id = p.job
WHERE p.gate = ?1 ORDER BY j.claimed_at, j.id LIMIT ?2;
