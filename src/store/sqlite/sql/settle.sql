-- Ending leases. Every statement that ends one is gated on (id, fence, running) (I2).

-- name: settle_row
SELECT lane, priority, attempt, owner, claimed_at, cancel FROM job
WHERE id = ?1 AND fence = ?2 AND state = 3;
-- name: settle_end
UPDATE job SET state = ?2, finished_at = ?3, owner = NULL, progress = NULL, cancel = 0
WHERE id = ?1;
-- name: settle_back
UPDATE job SET state = ?2, available_at = ?3, attempt = ?4, transient = transient + ?5,
    lost = lost + ?6, reason = ?7, owner = NULL, claimed_at = NULL, progress = NULL
WHERE id = ?1;
-- name: settle_lost
UPDATE job SET lost = lost + 1 WHERE id = ?1;
-- name: attempt_insert
INSERT INTO attempt (job, fence, attempt, session, started_at, finished_at, outcome, class,
                     exit_code, log_bytes, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);
-- name: result_set
INSERT INTO result (job, result) VALUES (?1, ?2)
ON CONFLICT (job) DO UPDATE SET result = excluded.result;
