-- Opening, and what an operator asks of the store itself.

-- What can be known without touching a table of the store; $1 is the schema's name.
-- name: facts
SELECT quote_ident(s.name) = s.name,
       pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',
       n.oid IS NOT NULL,
       CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
            ELSE has_schema_privilege(n.oid, 'CREATE') END,
       has_schema_privilege(n.oid, 'USAGE'),
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = n.oid),
       (SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = n.oid AND NOT a.attisdropped
          AND (c.relname, a.attname) IN (('migration', 'version'), ('migration', 'checksum'),
              ('migration', 'oldest'), ('meta', 'key'), ('meta', 'value'))) = 5,
       (SELECT coalesce(bool_and(has_table_privilege(c.oid, 'SELECT')), false) FROM pg_class c
        WHERE c.relnamespace = n.oid AND c.relname IN ('migration', 'meta', 'job')),
       (SELECT coalesce(bool_and(has_table_privilege(c.oid, 'INSERT') AND
                                 has_table_privilege(c.oid, 'UPDATE') AND
                                 has_table_privilege(c.oid, 'DELETE')), false) FROM pg_class c
        WHERE c.relnamespace = n.oid AND c.relname IN ('job', 'settled', 'body')),
       current_user::text, current_database()::text,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (VALUES ($1::text)) s (name) LEFT JOIN pg_namespace n ON n.nspname = s.name;

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: schema_version
SELECT m.version, m.oldest, (SELECT value FROM pawl.meta WHERE key = 'store_id'),
       EXISTS (SELECT 1 FROM pawl.meta WHERE key = 'copy'),
       (SELECT value FROM pawl.meta WHERE key = 'functions')
FROM pawl.migration m ORDER BY m.version DESC LIMIT 1;

-- name: migrate_lock
SELECT pg_advisory_xact_lock(hashtextextended('pawl.migrate', 0));

-- name: checksums
SELECT version, checksum FROM pawl.migration ORDER BY version;

-- name: sizes
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind IN ('r', 'S');

-- Each check returns one text for a thing that is not as it must be.
-- name: check_twice
SELECT 'job ' || j.id || ' has ended and has not' FROM pawl.job j JOIN pawl.settled s ON s.id = j.id
LIMIT 20;
-- name: check_bodies
SELECT 'job ' || j.id || ' has no body'
FROM (SELECT id FROM pawl.job UNION ALL SELECT id FROM pawl.settled) j
WHERE NOT EXISTS (SELECT 1 FROM pawl.body b WHERE b.id = j.id) LIMIT 20;
-- name: check_jobs
SELECT 'body ' || b.id || ' has no job' FROM pawl.body b
WHERE NOT EXISTS (SELECT 1 FROM pawl.job j WHERE j.id = b.id)
  AND NOT EXISTS (SELECT 1 FROM pawl.settled s WHERE s.id = b.id) LIMIT 20;
-- name: check_states
SELECT 'job ' || j.id || ' has the wrong state ' || j.state
FROM (SELECT id, state FROM pawl.job WHERE state NOT BETWEEN -1 AND 3 OR (state = -1 AND lock IS NULL)
      UNION ALL SELECT id, state FROM pawl.settled WHERE state NOT BETWEEN 4 AND 7) j LIMIT 20;
-- name: check_lanes
SELECT 'job ' || g.id || ' and its body lie in different lanes'
FROM (SELECT j.lane, b.queue, b.kind, b.host, min(j.id) AS id
      FROM (SELECT id, lane FROM pawl.job UNION ALL SELECT id, lane FROM pawl.settled) j
           JOIN pawl.body b ON b.id = j.id GROUP BY j.lane, b.queue, b.kind, b.host) g
WHERE g.lane <> pawl.name_id(g.queue, g.kind, g.host) LIMIT 20;
-- The best ready job of a lane is not ahead of its head, unless a wake tells of it.
-- name: check_heads
SELECT 'job ' || b.id || ' is ready, but ahead of the head of lane ' || b.lane
FROM (SELECT DISTINCT ON (lane) lane, rank, id FROM pawl.job WHERE state = 1
      ORDER BY lane, rank, id) b
WHERE NOT EXISTS (SELECT 1 FROM pawl.lane l WHERE l.id = b.lane AND l.head IS NOT NULL
                    AND (l.rank, l.head) <= (b.rank, b.id))
  AND NOT EXISTS (SELECT 1 FROM pawl.wake w WHERE w.lane = b.lane
                    AND (w.rank, w.job) <= (b.rank, b.id)) LIMIT 20;
-- name: check_counts
SELECT 'queue ' || queue || ', kind ' || kind || ': counts differ from its jobs'
FROM (SELECT queue, kind, n_blocked AS c0, n_queued AS c1, n_waiting AS c2, n_running AS c3,
             n_done AS c4, n_skipped AS c5, n_failed AS c6, n_cancelled AS c7 FROM pawl.class
      UNION ALL
      SELECT queue, kind, n_blocked, n_queued, n_waiting, n_running, n_done, n_skipped, n_failed,
             n_cancelled FROM pawl.delta
      UNION ALL
      SELECT b.queue, b.kind, -count(*) FILTER (WHERE j.state = 0),
             -count(*) FILTER (WHERE j.state IN (-1, 1)), -count(*) FILTER (WHERE j.state = 2),
             -count(*) FILTER (WHERE j.state = 3), -count(*) FILTER (WHERE j.state = 4),
             -count(*) FILTER (WHERE j.state = 5), -count(*) FILTER (WHERE j.state = 6),
             -count(*) FILTER (WHERE j.state = 7)
      FROM (SELECT id, state FROM pawl.job UNION ALL SELECT id, state FROM pawl.settled) j
           JOIN pawl.body b ON b.id = j.id GROUP BY b.queue, b.kind) c
GROUP BY queue, kind
HAVING (sum(c0), sum(c1), sum(c2), sum(c3), sum(c4), sum(c5), sum(c6), sum(c7)) <>
       (0, 0, 0, 0, 0, 0, 0, 0) LIMIT 20;
-- name: check_owners
SELECT 'job ' || j.id || CASE WHEN j.state <> 3 THEN ' does not run, but is owned'
                              WHEN j.owner IS NULL THEN ' runs without an owner'
                              ELSE ' runs in a session that does not exist' END
FROM pawl.job j
WHERE (j.state <> 3 AND j.owner IS NOT NULL)
   OR (j.state = 3 AND NOT EXISTS (SELECT 1 FROM pawl.session s WHERE s.id = j.owner)) LIMIT 20;
-- name: check_keys
SELECT 'key of job ' || k.id || ' outlives it without an end' FROM pawl.job_key k
WHERE k.expires IS NULL AND NOT EXISTS (SELECT 1 FROM pawl.body b WHERE b.id = k.id) LIMIT 20;
-- name: check_keyed
SELECT 'job ' || b.id || ' has lost its key' FROM pawl.body b
WHERE b.key IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM pawl.job_key k
                  WHERE k.id = b.id AND k.digest = pawl.key_digest(b.queue, b.key)) LIMIT 20;
-- name: check_attempts
SELECT 'attempt ' || a.fence || ' of job ' || a.job || ' is left over' FROM pawl.attempt a
WHERE NOT EXISTS (SELECT 1 FROM pawl.body b WHERE b.id = a.job) LIMIT 20;
-- name: check_fences
SELECT 'attempt ' || a.fence || ' of job ' || a.job || ' is ahead of its fence ' || j.fence
FROM pawl.attempt a JOIN (SELECT id, fence FROM pawl.job UNION ALL SELECT id, fence FROM pawl.settled) j
     ON j.id = a.job WHERE a.fence > j.fence LIMIT 20;
-- name: check_results
SELECT 'result of job ' || r.job || ' is left over' FROM pawl.result r
WHERE NOT EXISTS (SELECT 1 FROM pawl.body b WHERE b.id = r.job) LIMIT 20;
-- name: check_poison
SELECT 'job ' || p.job || ' is marked as poison but has not failed' FROM pawl.poison p
WHERE NOT EXISTS (SELECT 1 FROM pawl.settled s WHERE s.id = p.job AND s.state = 6) LIMIT 20;
-- name: check_permits
SELECT 'job ' || p.job || ' has a permit of gate ' || p.gate ||
       CASE WHEN j.id IS NULL THEN ', but does not run' ELSE ', which does not exist' END
FROM pawl.permit p LEFT JOIN pawl.job j ON j.id = p.job AND j.state = 3
WHERE j.id IS NULL OR NOT EXISTS (SELECT 1 FROM pawl.gate g WHERE g.id = p.gate) LIMIT 20;
-- name: check_unlimited
SELECT 'job ' || j.id || ' runs without a permit of gate ' || g.id
FROM pawl.job j JOIN pawl.lane l ON l.id = j.lane CROSS JOIN LATERAL unnest(l.gates) g (id)
WHERE j.state = 3 AND l.policy = (SELECT value::bigint FROM pawl.meta WHERE key = 'policy')
  AND NOT EXISTS (SELECT 1 FROM pawl.permit p WHERE p.job = j.id AND p.gate = g.id) LIMIT 20;
-- name: check_admitted
SELECT 'job ' || a.job || ' was admitted to ' || a.host || ', but does not run or does not know'
FROM pawl.admitted a
WHERE NOT EXISTS (SELECT 1 FROM pawl.job j WHERE j.id = a.job AND j.state = 3 AND j.admitted) LIMIT 20;
-- name: check_elsewhere
SELECT 'job ' || a.job || ' runs without a permit of gate ' || h.gate
FROM pawl.admitted a JOIN pawl.body b ON b.id = a.job
     CROSS JOIN LATERAL pawl.host_gates(b.queue, b.kind, a.host) h
WHERE NOT EXISTS (SELECT 1 FROM pawl.permit p WHERE p.job = a.job AND p.gate = h.gate) LIMIT 20;
-- name: check_gates
SELECT 'gate ' || g.id || ' belongs to no limit' FROM pawl.gate g
WHERE NOT EXISTS (SELECT 1 FROM pawl.limits l WHERE l.id = g.limit_id AND l.text IS NOT NULL) LIMIT 20;
-- name: check_parked
SELECT 'lane ' || l.id || ' waits for a gate that does not exist' FROM pawl.lane l
WHERE l.parked IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pawl.gate g WHERE g.id = l.parked) LIMIT 20;
-- name: check_locks
SELECT 'job ' || j.id || ' and its body have different locks'
FROM pawl.job j JOIN pawl.body b ON b.id = j.id
WHERE j.lock IS DISTINCT FROM
      ('x' || encode(substr(sha256(convert_to(b.lock, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint LIMIT 20;
-- A job waits for its lock only while another has it, or a wake tells that nobody has.
-- name: check_held
SELECT 'job ' || j.id || ' waits for a lock that nobody has'
FROM (SELECT lock, min(id) AS id FROM pawl.job WHERE state = -1 GROUP BY lock) j
WHERE NOT EXISTS (SELECT 1 FROM pawl.job h WHERE h.lock = j.lock AND h.state IN (1, 3))
  AND NOT EXISTS (SELECT 1 FROM pawl.wake w WHERE w.lock = j.lock) LIMIT 20;
-- name: check_ids
SELECT 'job ' || b.id || ' has an id that was not given out' FROM pawl.body b
WHERE b.id > (SELECT CASE WHEN has_sequence_privilege('pawl.job_id', 'SELECT')
                     THEN coalesce(pg_sequence_last_value('pawl.job_id'::regclass), 0) END)
LIMIT 20;

-- name: check_artifacts
SELECT 'artifact ' || a.id || ' of job ' || a.job || CASE WHEN a.fence > j.fence
       THEN ' is ahead of its fence ' || j.fence ELSE ' has no hash' END
FROM pawl.artifact a
     LEFT JOIN (SELECT id, fence FROM pawl.job UNION ALL SELECT id, fence FROM pawl.settled) j ON j.id = a.job
WHERE a.fence > j.fence OR octet_length(a.sha256) <> 32 LIMIT 20;
-- name: check_kept
SELECT 'fetch ' || f.fence || ' of job ' || f.job || ' has an artifact that does not exist'
FROM pawl.fetch f
WHERE f.artifact IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM pawl.artifact a
                  WHERE a.id = f.artifact AND a.job = f.job AND a.fence = f.fence) LIMIT 20;
-- name: check_fetches
SELECT 'fetch ' || f.fence || ' of job ' || f.job || ' is left over' FROM pawl.fetch f
WHERE f.artifact IS NULL
  AND NOT EXISTS (SELECT 1 FROM pawl.attempt a WHERE a.job = f.job AND a.fence = f.fence) LIMIT 20;
-- name: check_artifact_ids
SELECT 'artifact ' || a.id || ' has an id that was not given out' FROM pawl.artifact a
WHERE a.id > (SELECT CASE WHEN has_sequence_privilege('pawl.artifact_id', 'SELECT')
                     THEN coalesce(pg_sequence_last_value('pawl.artifact_id'::regclass), 0) END)
LIMIT 20;

-- What doctor prints.
-- name: advise_server
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on',
       pg_is_in_recovery(),
       (extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000000)::bigint,
       (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names') <> '',
       (CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_notification_queue_usage() END * 100)::int,
       current_setting('autovacuum') = 'on', pg_has_role('pg_read_all_stats', 'USAGE');
-- name: advise_table
SELECT n_live_tup, n_dead_tup,
       (extract(epoch FROM clock_timestamp() - greatest(last_vacuum, last_autovacuum)) * 1000000)::bigint
FROM pg_stat_user_tables WHERE relid = 'pawl.job'::regclass;
-- Old row versions stay for whoever may still see them: transactions of this database and their
-- ghosts.
-- name: advise_oldest
SELECT pid, coalesce(nullif(application_name, ''), backend_type), usename::text, coalesce(state, ''),
       (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint, coalesce(query, '')
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
  AND backend_type = 'client backend'
ORDER BY xact_start LIMIT 1;
-- name: advise_ghosts
SELECT 'replication slot ' || slot_name FROM pg_replication_slots
WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)
UNION ALL
SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - interval '5 minutes' LIMIT 5;
-- name: advise_backlog
SELECT (SELECT count(*) FROM pawl.wake), (SELECT count(*) FROM pawl.delta);
-- name: advise_limits
SELECT (SELECT count(*) FROM pawl.limits WHERE text IS NOT NULL), (SELECT count(*) FROM pawl.gate),
       (SELECT count(*) FROM pawl.gate WHERE breaker <> 0),
       (SELECT count(*) FROM pawl.lane WHERE parked IS NOT NULL);
