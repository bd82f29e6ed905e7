-- Ending leases. Every statement that ends one is gated on (id, fence, running) (I2).

-- name: settle_row
SELECT lane, priority - aged, attempt, owner, claimed_at, lock FROM job
WHERE id = ?1 AND fence = ?2 AND state = 3;
-- name: cancel_asked
SELECT 1 FROM cancel_ask WHERE job = ?1 AND fence = ?2;
-- name: settle_end
UPDATE job SET state = ?2, finished_at = ?3, owner = NULL
WHERE id = ?1 AND fence = ?4 AND state = 3;
-- name: settle_back
UPDATE job SET state = ?2, available_at = ?3, attempt = ?4, transient = transient + ?5,
    lost = lost + ?6, reason = ?7, owner = NULL, claimed_at = NULL,
    priority = priority - aged, aged = 0
WHERE id = ?1 AND fence = ?8 AND state = 3;
-- name: settle_lost
UPDATE job SET lost = lost + 1 WHERE id = ?1;
-- name: poison_insert
INSERT INTO poison (job) VALUES (?1) ON CONFLICT DO NOTHING;
-- name: attempt_insert
INSERT INTO attempt (job, fence, attempt, session, started_at, finished_at, outcome, class,
                     exit_code, log_bytes, error, fingerprint)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);
-- name: attempts_insert
INSERT INTO attempt (job, fence, attempt, session, started_at, finished_at, outcome, class,
                     exit_code, log_bytes, error, fingerprint)
VALUES {16: (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)};
-- name: run_count
SELECT count(*) FROM job WHERE id BETWEEN ?1 AND ?2 AND fence = ?3 AND state = 3;
-- name: run_end
UPDATE job SET state = ?3, finished_at = ?4, owner = NULL WHERE id BETWEEN ?1 AND ?2;
-- name: result_set
INSERT INTO result (job, result) VALUES (?1, ?2)
ON CONFLICT (job) DO UPDATE SET result = excluded.result;
