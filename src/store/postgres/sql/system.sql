-- Transactions and what the handle keeps of itself.

-- name: tx_settings
SELECT set_config('lock_timeout', $1::text, true), set_config('statement_timeout', $1::text, true),
       set_config('idle_in_transaction_session_timeout', '5000', true),
       set_config('synchronous_commit', CASE WHEN $2::boolean THEN 'off'
           WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
           ELSE current_setting('synchronous_commit') END, true);
-- The number of a transaction and what it was given in: timeline and memory of the server. The two
-- statements name a memory that is not known differently, so that it never counts as the same.
-- name: tx_id
SELECT pg_current_xact_id_if_assigned()::text::bigint,
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || coalesce((SELECT id FROM pawl.boot), 'then');
-- name: tx_id_bare
SELECT pg_current_xact_id_if_assigned()::text::bigint, '';
-- name: tx_status
SELECT pg_xact_status($1::bigint::text::xid8),
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || coalesce((SELECT id FROM pawl.boot), 'now');
-- name: boot_fill
INSERT INTO pawl.boot SELECT WHERE NOT EXISTS (SELECT 1 FROM pawl.boot) ON CONFLICT DO NOTHING;
-- name: notify
SELECT pawl.notify();
-- name: event_insert
INSERT INTO pawl.event (at, type, job, fence, session, detail)
VALUES (pawl.now_us(), $1::int, $2::bigint, $3::bigint, $4::bigint, $5::text);
