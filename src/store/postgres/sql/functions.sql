-- The functions of the schema: claiming, settling and adding in one round trip each. Installed after the
-- last migration, and again whenever they differ from those in the schema; meta 'functions' has their
-- checksum. One whose parameters change must be dropped by a migration.

CREATE OR REPLACE FUNCTION pawl.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The first 8 bytes of a SHA-256 over names with a NUL between them (no name has one).
CREATE OR REPLACE FUNCTION pawl.name_id(a text, b text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || encode(substr(sha256(convert_to(a, 'UTF8') || '\x00' || convert_to(b, 'UTF8')), 1, 8),
                         'hex'))::bit(64)::bigint $$;
CREATE OR REPLACE FUNCTION pawl.name_id(a text, b text, c text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || encode(substr(sha256(convert_to(a, 'UTF8') || '\x00' || convert_to(b, 'UTF8') ||
                                       '\x00' || convert_to(c, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint $$;
CREATE OR REPLACE FUNCTION pawl.lock_id(key text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || encode(substr(sha256(convert_to(key, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint $$;
-- At most so many bytes of a text.
CREATE OR REPLACE FUNCTION pawl.cut(v text, n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(v) <= n THEN v
                ELSE (SELECT left(v, max(i)) FROM generate_series(0, n) i
                      WHERE octet_length(left(v, i)) <= n) END $$;
-- As on SQLite: the length of the queue's name (at most 255 bytes) in 8 bytes, the name, the key.
CREATE OR REPLACE FUNCTION pawl.key_digest(queue text, key text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT substr(sha256(set_byte('\x0000000000000000', 0, octet_length(queue)) ||
                        convert_to(queue, 'UTF8') || convert_to(key, 'UTF8')), 1, 16) $$;

-- One statement's rows of `up` tell what moved; used by the functions below.
CREATE OR REPLACE FUNCTION pawl.count_move(p_queue text, p_kind text, p_from integer, p_to integer)
RETURNS void LANGUAGE sql VOLATILE AS
$$ INSERT INTO pawl.delta (class, queue, kind, first_at, at, n_blocked, n_queued, n_waiting, n_running,
                           n_done, n_skipped, n_failed, n_cancelled)
   SELECT pawl.name_id(p_queue, p_kind), p_queue, p_kind, CASE WHEN p_from < 0 THEN t END, t,
          (p_to = 0)::int - (p_from = 0)::int, (p_to = 1)::int - (p_from = 1)::int,
          (p_to = 2)::int - (p_from = 2)::int, (p_to = 3)::int - (p_from = 3)::int,
          (p_to = 4)::int - (p_from = 4)::int, (p_to = 5)::int - (p_from = 5)::int,
          (p_to = 6)::int - (p_from = 6)::int, (p_to = 7)::int - (p_from = 7)::int
   FROM pawl.now_us() t $$;

-- Deltas become part of the totals. One folder at a time; the others have nothing to do.
CREATE OR REPLACE FUNCTION pawl.fold_deltas(p_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n integer;
BEGIN
    IF NOT pg_try_advisory_xact_lock(pawl.name_id('pawl.fold', current_database()::text)) THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM pawl.delta d WHERE d.id IN (SELECT id FROM pawl.delta ORDER BY id LIMIT p_max)
        RETURNING d.*
    ), slots AS (
        INSERT INTO pawl.throughput AS t
        SELECT class, at / 10000000, sum(e_done), sum(e_skipped), sum(e_failed), sum(e_retried),
               sum(e_lost), sum(backoff_us), sum(retry_after_us)
        FROM gone WHERE (e_done | e_skipped | e_failed | e_retried | e_lost) <> 0 GROUP BY 1, 2
        ON CONFLICT (class, slot) DO UPDATE SET
            n_done = t.n_done + excluded.n_done, n_skipped = t.n_skipped + excluded.n_skipped,
            n_failed = t.n_failed + excluded.n_failed, n_retried = t.n_retried + excluded.n_retried,
            n_lost = t.n_lost + excluded.n_lost, backoff_us = t.backoff_us + excluded.backoff_us,
            retry_after_us = t.retry_after_us + excluded.retry_after_us
    ), totals AS (
        INSERT INTO pawl.class AS c
        SELECT class, min(queue), min(kind), sum(n_blocked), sum(n_queued), sum(n_waiting),
               sum(n_running), sum(n_done), sum(n_skipped), sum(n_failed), sum(n_cancelled),
               sum(e_retried), min(first_at)
        FROM gone GROUP BY class
        ON CONFLICT (id) DO UPDATE SET
            n_blocked = c.n_blocked + excluded.n_blocked, n_queued = c.n_queued + excluded.n_queued,
            n_waiting = c.n_waiting + excluded.n_waiting, n_running = c.n_running + excluded.n_running,
            n_done = c.n_done + excluded.n_done, n_skipped = c.n_skipped + excluded.n_skipped,
            n_failed = c.n_failed + excluded.n_failed,
            n_cancelled = c.n_cancelled + excluded.n_cancelled,
            n_retries = c.n_retries + excluded.n_retries,
            first_at = least(c.first_at, excluded.first_at)
    )
    SELECT count(*) INTO n FROM gone;
    RETURN n;
END $$;

-- Where a number is in a rising array; null: it is not. = ANY would walk the array for every row.
CREATE OR REPLACE FUNCTION pawl.place(x bigint, v bigint[]) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN v[width_bucket(x, v)] = x THEN width_bucket(x, v) END $$;

CREATE OR REPLACE FUNCTION pawl.host_like(pattern text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%') $$;

-- host_matches() of limit.c: stars of a pattern that is about addresses stand for digits and dots.
CREATE OR REPLACE FUNCTION pawl.host_matches(pattern text, host text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT host LIKE pawl.host_like(pattern) AND (pattern !~ '^[0-9][0-9.*]*$' OR host !~ '[^0-9.]') $$;

-- hosts_match() of limit.c: one of the patterns, and none of those that begin with '!'.
CREATE OR REPLACE FUNCTION pawl.hosts_match(patterns text[], host text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(cardinality(patterns), 0) = 0 OR (host <> '' AND
          (SELECT coalesce(bool_or(pawl.host_matches(h, host)) FILTER (WHERE h NOT LIKE '!%'), true)
                  AND NOT coalesce(bool_or(pawl.host_matches(substr(h, 2), host)) FILTER (WHERE h LIKE '!%'),
                                   false)
           FROM unnest(patterns) h)) $$;

-- ---- limits: which gates a lane has, and what a gate decides ----

-- The gates of (queue, kind, host): limits_of() of limit.c in SQL. Ids rise.
CREATE OR REPLACE FUNCTION pawl.host_gates(p_queue text, p_kind text, p_host text)
RETURNS TABLE (gate bigint, limit_id bigint, name text, value text, each integer)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT pawl.name_id(h.name, h.value), h.id, h.name::text, h.value, h.each::int
    FROM (SELECT m.id, m.name, m.each, bool_or(m.replaces) OVER () AS replaced,
                 CASE m.each WHEN 0 THEN '' WHEN 1 THEN p_host WHEN 2 THEN p_queue ELSE p_kind END AS value
          FROM pawl.limits m
          WHERE m.text IS NOT NULL AND (m.queue IS NULL OR m.queue = p_queue)
            AND (m.kind IS NULL OR m.kind = p_kind) AND (m.each <> 1 OR p_host <> '')
            AND pawl.hosts_match(m.hosts, p_host)) h
    WHERE NOT h.replaced OR h.each = 0
    ORDER BY 1;
END $$;

-- The gates of these lanes, as the limits of this number have them; limits_of() of limit.c in SQL.
-- The caller has the policy's lock. Lanes that somebody else has locked keep their old number.
CREATE OR REPLACE FUNCTION pawl.map_lanes(p_lanes bigint[], p_policy bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    locked bigint[];
    texts text[]; -- the gates of each
BEGIN
    SELECT array_agg(l.id) INTO locked
    FROM (SELECT id FROM pawl.lane WHERE id = ANY (p_lanes) ORDER BY id FOR UPDATE SKIP LOCKED) l;
    WITH hit AS MATERIALIZED (
        SELECT l.id AS lane, m.id AS limit_id, m.name, m.each,
               CASE m.each WHEN 0 THEN '' WHEN 1 THEN l.host WHEN 2 THEN l.queue ELSE l.kind END AS value,
               bool_or(m.replaces) OVER (PARTITION BY l.id) AS replaced
        FROM unnest(locked) x (id) CROSS JOIN LATERAL
             (SELECT id, queue, kind, host FROM pawl.lane WHERE lane.id = x.id OFFSET 0) l
             CROSS JOIN pawl.limits m
        WHERE m.text IS NOT NULL AND (m.queue IS NULL OR m.queue = l.queue)
          AND (m.kind IS NULL OR m.kind = l.kind) AND (m.each <> 1 OR l.host <> '')
          AND pawl.hosts_match(m.hosts, l.host)
    ), kept AS MATERIALIZED (
        SELECT h.lane, pawl.name_id(h.name, h.value) AS gate, h.limit_id, h.value
        FROM hit h WHERE NOT h.replaced OR h.each = 0
    ), made AS (
        INSERT INTO pawl.gate (id, limit_id, value, policy)
        SELECT DISTINCT ON (k.gate) k.gate, k.limit_id, k.value, p_policy FROM kept k ORDER BY k.gate
        ON CONFLICT DO NOTHING
    ), found AS MATERIALIZED ( -- no join: those of two large sets are nested loops here
        SELECT u.lane AS id, array_agg(u.gate ORDER BY u.gate) FILTER (WHERE u.gate IS NOT NULL) AS gates
        FROM (SELECT k.lane, k.gate FROM kept k UNION ALL
              SELECT x, NULL FROM unnest(locked) x) u (lane, gate)
        GROUP BY u.lane ORDER BY u.lane
    )
    SELECT array_agg(f.id ORDER BY f.id), array_agg(coalesce(f.gates, '{}')::text ORDER BY f.id)
    INTO locked, texts FROM found f;
    UPDATE pawl.lane l SET gates = texts[width_bucket(l.id, locked)]::bigint[], policy = p_policy
    WHERE l.id = ANY (locked);
END $$;

-- gate_room() of gate.c, line by line: {how many may start, why not more (enum gate_shut), until when}.
CREATE OR REPLACE FUNCTION pawl.gate_room(s pawl.gate, p pawl.limits, p_used bigint, p_now bigint,
                                          p_want bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n bigint := p_want;
    why bigint := 0;
    t bigint;
    burst bigint;
    may bigint;
BEGIN
    IF s.breaker <> 0 THEN
        IF s.breaker = 2 THEN
            RETURN ARRAY[0, 5, 0];
        ELSIF s.until > p_now THEN
            RETURN ARRAY[0, 4, s.until];
        END IF;
        n := 1; why := 5;
    END IF;
    IF s.held_until > p_now THEN
        RETURN ARRAY[0, 3, s.held_until];
    END IF;
    IF p.cap > 0 AND p.cap - p_used < n THEN
        n := greatest(p.cap - p_used, 0); why := 1;
    END IF;
    t := pawl.interval_now(s, p);
    IF n = 0 OR t = 0 THEN
        RETURN ARRAY[n, why, 0];
    END IF;
    burst := pawl.burst_now(s, p);
    may := (p_now + burst * t - greatest(s.tat, p_now)) / t;
    IF may < n THEN
        n := greatest(may, 0); why := 2;
    END IF;
    RETURN ARRAY[n, why, CASE WHEN why = 2 THEN greatest(s.tat, p_now) + n * t - (burst - 1) * t
                              ELSE 0 END];
END $$;

-- limit_interval(), gate_interval() and burst_now() of gate.c.
CREATE OR REPLACE FUNCTION pawl.limit_interval(s pawl.gate, p pawl.limits) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p.interval_us = 0 OR NOT p.adaptive OR s.interval_us = 0 THEN p.interval_us
                ELSE least(greatest(s.interval_us, p.interval_us), p.slowest_us) END $$;
CREATE OR REPLACE FUNCTION pawl.interval_now(s pawl.gate, p pawl.limits) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(CASE WHEN p.interval_us = 0 OR NOT p.adaptive OR s.interval_us = 0 THEN p.interval_us
                         ELSE least(greatest(s.interval_us, p.interval_us), p.slowest_us) END, s.pace_us) $$;
CREATE OR REPLACE FUNCTION pawl.burst_now(s pawl.gate, p pawl.limits) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN s.pace_us > CASE WHEN p.interval_us = 0 OR NOT p.adaptive OR s.interval_us = 0
                                      THEN p.interval_us
                                      ELSE least(greatest(s.interval_us, p.interval_us), p.slowest_us) END
                THEN 1 ELSE p.burst END $$;

-- doubled() of gate.c.
CREATE OR REPLACE FUNCTION pawl.doubled(p_first bigint, p_times integer, p_max bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v bigint := p_first;
BEGIN
    FOR i IN 1 .. p_times LOOP
        EXIT WHEN v >= p_max;
        v := v * 2;
    END LOOP;
    RETURN least(v, p_max);
END $$;

-- open_now() of gate.c.
CREATE OR REPLACE FUNCTION pawl.gate_opened(s pawl.gate, p pawl.limits, p_now bigint) RETURNS pawl.gate
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.breaker := 1;
    s.until := p_now + pawl.doubled(p.open_us, s.opens, p.max_open_us);
    s.since := p_now;
    s.opens := s.opens + 1;
    s.epoch := s.epoch + 1;
    s.failures := 0;
    s.probe_job := 0; s.probe_fence := 0;
    s.window_at := 0; s.window_calls := 0; s.window_failures := 0;
    RETURN s;
END $$;

-- gate_close() of gate.c.
CREATE OR REPLACE FUNCTION pawl.gate_closed(s pawl.gate, p_now bigint) RETURNS pawl.gate
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.breaker := 0;
    s.since := p_now;
    s.until := 0; s.opens := 0; s.failures := 0;
    s.probe_job := 0; s.probe_fence := 0;
    s.window_at := 0; s.window_calls := 0; s.window_failures := 0;
    RETURN s;
END $$;

-- gate_result() of gate.c. `change` by number as enum gate_change there; why: what opened it.
CREATE OR REPLACE FUNCTION pawl.gate_result(INOUT s pawl.gate, p pawl.limits, p_signal integer,
                                            p_hold boolean, p_retry_after bigint, p_claimed bigint,
                                            p_job bigint, p_fence bigint, p_now bigint,
                                            OUT change integer, OUT why text)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    t bigint := pawl.limit_interval(s, p);
    moved boolean := false;
    rate bigint; spent bigint; until bigint;
    asked boolean; burst boolean; failed boolean; tips boolean;
BEGIN
    change := 0;
    IF p.adaptive AND t <> 0 AND p_claimed > s.cut_at + 200000 THEN
        IF p_signal IN (5, 4) THEN
            s.interval_us := least((t * 4 + 3 - 1) / 3, p.slowest_us);
            s.cut_at := p_now; s.raised_at := p_now;
            moved := true;
        ELSIF p_signal = 1 AND t > p.interval_us AND p_now - s.raised_at >= 100000 THEN
            rate := 1000000000000 / t;
            spent := least(p_now - s.raised_at, 1000000);
            rate := rate + 1000000000000 / p.interval_us / 100 * spent / 1000000;
            s.interval_us := greatest((1000000000000 + rate - 1) / rate, p.interval_us);
            s.raised_at := p_now;
            moved := true;
        END IF;
    END IF;
    IF p_hold AND p_signal = 1 AND s.held_n <> 0 THEN
        s.held_n := 0;
        moved := true;
    ELSIF p_hold AND p_signal = 5 AND p.respect THEN
        asked := p_retry_after >= 0; burst := p_claimed <= s.held_at;
        IF asked OR NOT (burst OR (p.adaptive AND p.interval_us <> 0)) THEN
            until := p_now + CASE WHEN asked THEN least(p_retry_after, p.max_pause_us)
                                  ELSE pawl.doubled(p.pause_us, s.held_n, p.max_pause_us) END;
            IF NOT asked THEN
                s.held_n := s.held_n + 1;
            END IF;
            IF NOT burst THEN
                s.held_at := p_now;
            END IF;
            IF until > s.held_until THEN
                s.held_until := until; s.held_asked := asked;
            END IF;
            moved := true;
        END IF;
    END IF;
    failed := p_signal IN (3, 4);
    IF s.breaker = 2 AND s.probe_job = p_job AND s.probe_fence = p_fence THEN
        IF p_signal = 0 THEN
            s.opens := s.opens - 1;
            s := pawl.gate_opened(s, p, p_now);
            s.until := p_now;
            change := 1;
        ELSIF p_signal = 6 THEN
            s.opens := s.opens - 1;
            s := pawl.gate_opened(s, p, p_now);
            change := 2; why := 'the probe was lost';
        ELSIF failed THEN
            s := pawl.gate_opened(s, p, p_now);
            change := 2; why := 'the probe failed: ';
        ELSE
            s := pawl.gate_closed(s, p_now);
            change := 3;
        END IF;
    ELSIF s.breaker = 0 AND (p.threshold <> 0 OR p.percent <> 0) AND p_claimed >= s.since
          AND p_signal NOT IN (0, 6, 5) THEN
        change := (failed OR s.failures <> 0)::int;
        s.failures := CASE WHEN failed THEN s.failures + 1 ELSE 0 END;
        tips := p.threshold <> 0 AND s.failures >= p.threshold;
        why := s.failures || ' transient failures in a row; last: ';
        IF p.percent <> 0 THEN
            change := 1;
            IF p_now - s.window_at > p.window_us THEN
                s.window_at := p_now; s.window_calls := 0; s.window_failures := 0;
            END IF;
            s.window_calls := s.window_calls + 1;
            s.window_failures := s.window_failures + failed::int;
            IF NOT tips THEN
                tips := failed AND s.window_calls >= p.min_calls
                        AND s.window_failures::bigint * 100 >= p.percent::bigint * s.window_calls;
                why := s.window_failures || ' of ' || s.window_calls || ' calls failed; last: ';
            END IF;
        END IF;
        IF tips THEN
            s := pawl.gate_opened(s, p, p_now);
            change := 2;
        END IF;
    END IF;
    IF change = 0 AND moved THEN
        change := 1;
    END IF;
END $$;

-- What an event says of a gate; p_until: 0 or INT64_MAX for none.
CREATE OR REPLACE FUNCTION pawl.gate_detail(p_limit text, p_value text, p_until bigint, p_why text)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '{"limit":' || to_json(p_limit)::text || ',"value":' || to_json(p_value)::text || ',"until":' ||
           CASE WHEN p_until IN (0, 9223372036854775807) THEN 'null'
                ELSE '"' || to_char(to_timestamp(p_until / 1000000) AT TIME ZONE 'UTC',
                                    'YYYY-MM-DD"T"HH24:MI:SS') ||
                     '.' || lpad((p_until % 1000000 / 1000)::text, 3, '0') || 'Z"' END ||
           ',"why":' || coalesce(to_json(p_why)::text, 'null') || '}' $$;

-- ---- limits: gates in the claim ----

-- How much room these gates have, which the caller has locked in an earlier statement: permits that were
-- committed before are seen (I7). writes: starting something under it changes its row. (STABLE, so that it
-- becomes part of its caller's statement, which is planned once.)
CREATE OR REPLACE FUNCTION pawl.rooms(p_gates bigint[], p_want integer, p_now bigint)
RETURNS TABLE (id bigint, room integer, why integer, until bigint, writes boolean)
LANGUAGE sql STABLE AS $$
    SELECT g.id, x.r[1]::int, x.r[2]::int, x.r[3],
           coalesce(l.interval_us > 0 OR g.pace_us > 0 OR g.breaker = 1, false)
    FROM pawl.gate g LEFT JOIN pawl.limits l ON l.id = g.limit_id AND l.text IS NOT NULL
         CROSS JOIN LATERAL
         (SELECT CASE WHEN l.cap > 0 THEN (SELECT count(*) FROM pawl.permit p WHERE p.gate = g.id)
                      ELSE 0 END AS n OFFSET 0) used
         CROSS JOIN LATERAL
         (SELECT CASE WHEN l.id IS NULL THEN ARRAY[p_want, 0, 0]::bigint[]
                      WHEN g.breaker = 0 AND g.held_until <= p_now AND l.interval_us = 0
                           AND g.pace_us = 0 THEN
                          CASE WHEN l.cap > 0 AND l.cap - used.n < p_want
                               THEN ARRAY[greatest(l.cap - used.n, 0), 1, 0]
                               ELSE ARRAY[p_want, 0, 0] END
                      ELSE pawl.gate_room(g, l, used.n, p_now, p_want) END AS r
          OFFSET 0) x
    WHERE g.id = ANY (p_gates) $$;

-- These lanes met a shut gate: they leave the ready ones until it has room. Lanes that somebody else has
-- locked stay; returned. A gate that is full is looked at again soon, because a lease may just be ending
-- whose settle does not see `shut` yet (see unpark); v: when time opens it, null: nothing but an operator does.
CREATE OR REPLACE FUNCTION pawl.park(p_lanes bigint[], p_gates bigint[], p_untils bigint[], p_now bigint)
RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    locked bigint[];
    on_gate record;
BEGIN
    PERFORM pawl.correct_heads(p_lanes, p_now); -- one without work must not be woken before others
    SELECT array_agg(l.id) INTO locked
    FROM (SELECT id FROM pawl.lane WHERE id = ANY (p_lanes) ORDER BY id FOR UPDATE SKIP LOCKED) l;
    FOR on_gate IN
        SELECT u.gate, array_agg(u.lane) AS lanes,
               min(CASE WHEN u.until = 9223372036854775807 THEN NULL WHEN u.until > 0 THEN u.until
                        ELSE p_now + 5000 END) AS v
        FROM unnest(p_lanes, p_gates, p_untils) u (lane, gate, until)
        WHERE pawl.place(u.lane, locked) IS NOT NULL GROUP BY u.gate
    LOOP
        UPDATE pawl.lane SET parked = on_gate.gate WHERE id = ANY (on_gate.lanes) AND head IS NOT NULL;
        IF FOUND THEN
            UPDATE pawl.gate SET shut = true, wake_at = least(wake_at, on_gate.v)
            WHERE id = on_gate.gate AND (NOT shut OR wake_at IS NULL OR wake_at > on_gate.v);
        END IF;
    END LOOP;
    RETURN ARRAY(SELECT x FROM unnest(p_lanes) x WHERE pawl.place(x, coalesce(locked, '{}')) IS NULL);
END $$;

-- Lanes parked on gates that were woken, or that time opens, may go again: as many as there is room for,
-- the best first. Gates that another claim has locked are left to it. A settle that did not see `shut` had
-- deleted its permit before the claim that parked was committed: it is known here by the permit's xmax, and
-- waited for. Where there is none, whoever frees a permit writes a wake.
CREATE OR REPLACE FUNCTION pawl.unpark(p_from bigint, p_newest bigint, p_woken bigint[], p_now bigint,
                                       p_policy bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    wanted bigint[];
    locked bigint[];
    g record;
    n bigint;
    left_over boolean;
BEGIN
    SELECT array_agg(x) INTO wanted
    FROM (SELECT x FROM unnest(p_woken[1:200]) x
          UNION
          SELECT d.id FROM (SELECT id FROM pawl.gate WHERE wake_at <= p_now
                            ORDER BY wake_at LIMIT 64) d) u (x);
    SELECT array_agg(l.id) INTO locked
    FROM (SELECT id FROM pawl.gate WHERE id = ANY (wanted) ORDER BY id FOR UPDATE SKIP LOCKED) l;
    DELETE FROM pawl.wake w
    WHERE w.id BETWEEN p_from AND p_newest AND w.gate = ANY (p_woken[1:200])
      AND (pawl.place(w.gate, locked) IS NOT NULL
           OR NOT EXISTS (SELECT 1 FROM pawl.gate x WHERE x.id = w.gate));
    FOR g IN SELECT r.id, r.room, r.until, x.policy, x.shut
             FROM pawl.rooms(locked, 1000, p_now) r JOIN pawl.gate x ON x.id = r.id
    LOOP
        n := g.room;
        IF g.policy <> p_policy THEN -- they may have other gates now
            UPDATE pawl.lane SET parked = NULL WHERE id = ANY (ARRAY
                (SELECT id FROM pawl.lane WHERE parked = g.id AND policy <> p_policy LIMIT 1000
                 FOR UPDATE SKIP LOCKED));
            IF FOUND THEN
                n := greatest(n, 1);
            END IF;
        END IF;
        IF g.room > 0 THEN
            UPDATE pawl.lane SET parked = NULL WHERE id = ANY (ARRAY
                (SELECT id FROM pawl.lane WHERE parked = g.id ORDER BY rank, turn, head LIMIT g.room
                 FOR UPDATE SKIP LOCKED));
        END IF;
        left_over := EXISTS (SELECT 1 FROM pawl.lane WHERE parked = g.id);
        UPDATE pawl.gate SET shut = left_over,
            policy = CASE WHEN n = g.room THEN p_policy ELSE policy END,
            wake_at = CASE WHEN NOT left_over OR g.until = 9223372036854775807 THEN NULL
                           WHEN n > 0 THEN p_now
                           WHEN g.until > 0 THEN g.until
                           WHEN EXISTS (SELECT 1 FROM pawl.permit p WHERE p.gate = g.id AND p.xmax <> '0')
                           THEN p_now + 10000 ELSE p_now + 1000000 END
        WHERE id = g.id;
    END LOOP;
END $$;

-- n jobs start under each of these locked gates, the first of them being this one: gate_take() of gate.c.
CREATE OR REPLACE FUNCTION pawl.gates_taken(p_gates bigint[], p_counts integer[], p_firsts bigint[],
                                            p_session bigint, p_now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH u AS MATERIALIZED (
        SELECT u.gate, u.n, u.job, j.fence
        FROM unnest(p_gates, p_counts, p_firsts) u (gate, n, job) CROSS JOIN LATERAL
             (SELECT fence FROM pawl.job WHERE job.id = u.job OFFSET 0) j
    ), up AS (
        UPDATE pawl.gate g SET
            tat = CASE WHEN l.interval_us > 0 OR g.pace_us > 0
                       THEN greatest(g.tat, p_now) + u.n * pawl.interval_now(g, l) ELSE g.tat END,
            breaker = CASE g.breaker WHEN 1 THEN 2 ELSE g.breaker END,
            since = CASE g.breaker WHEN 1 THEN p_now ELSE g.since END,
            probe_job = CASE g.breaker WHEN 1 THEN u.job ELSE g.probe_job END,
            probe_fence = CASE g.breaker WHEN 1 THEN u.fence ELSE g.probe_fence END
        FROM u, pawl.limits l
        WHERE g.id = u.gate AND l.id = g.limit_id
          AND (l.interval_us > 0 OR g.pace_us > 0 OR g.breaker = 1)
        RETURNING g.value, g.breaker, g.since, g.probe_job, l.name, u.job, u.fence
    )
    INSERT INTO pawl.event (at, type, job, fence, session, detail)
    SELECT p_now, 23, up.job, up.fence, p_session,
           pawl.gate_detail(up.name, up.value, 0, NULL)
    FROM up WHERE up.breaker = 2 AND up.since = p_now AND up.probe_job = up.job
    ORDER BY up.name, up.value;
END $$;

-- ---- locks ----

-- Of the jobs with one lock the best may be ready, and only if none of them runs: what wakes of locks
-- tell of. One claim at a time for each lock; what another is at stays, and `busy` says so.
CREATE OR REPLACE FUNCTION pawl.fold_locks(p_from bigint, p_newest bigint, OUT busy boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    wanted bigint[];
    mine bigint[];
    best bigint[];
    worse bigint[]; better bigint[];
    put_back bigint[];
    later bigint[];
BEGIN
    SELECT array_agg(x.lock) INTO wanted
    FROM (SELECT w.lock FROM pawl.wake w
          WHERE w.id BETWEEN p_from AND p_newest AND w.lock IS NOT NULL
          GROUP BY w.lock ORDER BY min(w.rank), min(w.id) LIMIT 501) x;
    SELECT array_agg(x ORDER BY x) INTO mine
    FROM unnest(wanted[1:500]) x WHERE pg_try_advisory_xact_lock(x # pawl.name_id('pawl.lock', ''));
    busy := coalesce(cardinality(mine), 0) < cardinality(wanted);
    SELECT array_agg(b.id) FILTER (WHERE b.id IS NOT NULL AND c.id IS NULL),
           array_agg(x.lock) FILTER (WHERE b.id IS NULL AND c.id IS NULL AND EXISTS
               (SELECT 1 FROM pawl.job w WHERE w.lock = x.lock AND w.state = -1)),
           array_agg(c.id ORDER BY c.id) FILTER (WHERE c.state = 1 AND (b.rank, b.id) < (c.rank, c.id)),
           array_agg(b.id ORDER BY c.id) FILTER (WHERE c.state = 1 AND (b.rank, b.id) < (c.rank, c.id))
    INTO best, later, worse, better
    FROM unnest(mine) x (lock) LEFT JOIN LATERAL
         (SELECT id, rank FROM pawl.job WHERE job.lock = x.lock AND state = -1
          ORDER BY rank, id LIMIT 1 FOR UPDATE SKIP LOCKED) b ON true
         LEFT JOIN LATERAL
         (SELECT id, rank, state FROM pawl.job WHERE job.lock = x.lock AND state IN (1, 3) LIMIT 1) c
         ON true;
    IF worse IS NOT NULL THEN
        WITH down AS (
            UPDATE pawl.job SET state = -1, rank = rank + aged, aged = 0 WHERE id = ANY (ARRAY
                (SELECT id FROM pawl.job WHERE id = ANY (worse) AND state + 0 = 1 FOR UPDATE SKIP LOCKED))
            RETURNING id
        )
        SELECT array_agg(id) INTO put_back FROM down;
        SELECT best || array_agg(better[pawl.place(x, worse)]) INTO best FROM unnest(put_back) x;
    END IF;
    WITH up AS (
        UPDATE pawl.job SET state = 1 WHERE id = ANY (best) RETURNING id, lane, rank
    )
    INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
    SELECT DISTINCT ON (u.lane) u.lane, b.queue, b.kind, b.host, u.rank, u.id
    FROM up u CROSS JOIN LATERAL
         (SELECT queue, kind, host FROM pawl.body WHERE body.id = u.id OFFSET 0) b
    ORDER BY u.lane, u.rank, u.id;
    DELETE FROM pawl.wake w
    WHERE w.id BETWEEN p_from AND p_newest AND pawl.place(w.lock, mine) IS NOT NULL
      AND NOT coalesce(w.lock = ANY (later), false);
    busy := busy OR later IS NOT NULL;
END $$;

-- Wakes become part of the lanes' heads, under the lane's lock and without waiting for one: what is
-- locked is left for the next claim, and `busy` says so. p_from: wakes below it were seen before.
-- Gates that wakes tell of are only returned. It holds the limits still until the end of the transaction;
-- policy null: they are just being changed, nothing was done.
CREATE OR REPLACE FUNCTION pawl.fold_wakes(p_from bigint, OUT busy boolean, OUT newest bigint,
                                           OUT policy bigint, OUT fair boolean, OUT gates bigint[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    -- No lane is found by a join: the plan of one may be older than the lanes, and go through all of
    -- them for each wake.
    wanted bigint[];
    locks boolean;
    locked bigint[];
    made bigint[];
    limited boolean;
    lanes bigint[]; ranks integer[]; heads bigint[]; -- the best of each lane
BEGIN
    busy := true;
    IF NOT pg_try_advisory_xact_lock_shared(pawl.name_id('pawl.policy', '')) THEN
        RETURN;
    END IF;
    busy := false;
    SELECT max(m.value) FILTER (WHERE m.key = 'policy')::bigint,
           bool_or(m.value = '1') FILTER (WHERE m.key = 'claim_order') INTO policy, fair
    FROM pawl.meta m WHERE m.key IN ('policy', 'claim_order');
    SELECT array_agg(DISTINCT w.lane) FILTER (WHERE w.lane <> 0), array_agg(DISTINCT w.gate)
           FILTER (WHERE w.gate IS NOT NULL), bool_or(w.lock IS NOT NULL), max(w.id)
    INTO wanted, gates, locks, newest
    FROM (SELECT id, lane, gate, lock FROM pawl.wake WHERE id >= p_from ORDER BY id LIMIT 20000) w;
    IF locks THEN
        SELECT f.busy INTO busy FROM pawl.fold_locks(p_from, newest) f;
        SELECT array_agg(DISTINCT w.lane) FILTER (WHERE w.lane <> 0), max(w.id) INTO wanted, newest
        FROM (SELECT id, lane FROM pawl.wake WHERE id >= p_from ORDER BY id LIMIT 20000) w;
    END IF;
    IF wanted IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(l.id) INTO locked
    FROM (SELECT id FROM pawl.lane WHERE id = ANY (wanted) ORDER BY id FOR UPDATE SKIP LOCKED) l;
    IF coalesce(cardinality(locked), 0) < cardinality(wanted)
       AND pg_try_advisory_xact_lock(pawl.name_id('pawl.lane', '')) THEN
        -- Lanes that are new: one claim at a time makes them.
        limited := EXISTS (SELECT 1 FROM pawl.limits WHERE text IS NOT NULL);
        WITH ins AS (
            INSERT INTO pawl.lane (id, class, queue, kind, host, rank, head_at, policy)
            SELECT DISTINCT ON (w.lane) w.lane, pawl.name_id(w.queue, w.kind), w.queue, w.kind, w.host, 0, 0,
                   CASE WHEN limited THEN -1 ELSE policy END
            FROM (SELECT * FROM pawl.wake w
                  WHERE w.id BETWEEN p_from AND newest AND w.lane <> 0
                    AND (SELECT l.id FROM pawl.lane l WHERE l.id = w.lane) IS NULL
                  ORDER BY w.id LIMIT CASE WHEN limited THEN 4000 END) w
            ORDER BY w.lane
            ON CONFLICT DO NOTHING RETURNING id
        )
        SELECT array_agg(id) INTO made FROM ins;
        IF limited AND made IS NOT NULL THEN
            PERFORM pawl.map_lanes(made, policy);
        END IF;
        SELECT array_agg(x ORDER BY x) INTO locked FROM unnest(locked || made) x;
    END IF;
    busy := busy OR coalesce(cardinality(locked), 0) < cardinality(wanted);
    WITH gone AS (
        DELETE FROM pawl.wake w
        WHERE w.id BETWEEN p_from AND newest AND locked[width_bucket(w.lane, locked)] = w.lane
        RETURNING w.lane, w.rank, w.job
    ), best AS (
        SELECT DISTINCT ON (lane) lane, rank, job FROM gone ORDER BY lane, rank, job
    )
    SELECT array_agg(b.lane ORDER BY b.lane), array_agg(b.rank ORDER BY b.lane),
           array_agg(b.job ORDER BY b.lane)
    INTO lanes, ranks, heads FROM best b;
    UPDATE pawl.lane l SET rank = ranks[width_bucket(l.id, lanes)], head_at = pawl.now_us(),
        head = heads[width_bucket(l.id, lanes)]
    WHERE l.id = ANY (lanes)
      AND (l.head IS NULL OR
           (ranks[width_bucket(l.id, lanes)], heads[width_bucket(l.id, lanes)]) < (l.rank, l.head));
END $$;

-- Waiting jobs whose time has come become ready; those with a lock when its turn is theirs.
CREATE OR REPLACE FUNCTION pawl.promote(p_now bigint) RETURNS void LANGUAGE sql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
    WITH due AS (
        SELECT id FROM pawl.job WHERE state = 2 AND available_at <= p_now
        ORDER BY available_at LIMIT 2000 FOR UPDATE SKIP LOCKED
    ), up AS (
        UPDATE pawl.job j SET state = CASE WHEN j.lock IS NULL THEN 1 ELSE -1 END, available_at = p_now,
            reason = 0
        FROM due d WHERE j.id = d.id RETURNING j.id, j.lane, j.rank, j.lock
    ), named AS MATERIALIZED (
        SELECT u.id, u.lane, u.rank, u.lock, b.queue, b.kind, b.host
        FROM up u JOIN pawl.body b ON b.id = u.id
    ), d AS (
        INSERT INTO pawl.delta (class, queue, kind, at, n_waiting, n_queued)
        SELECT pawl.name_id(queue, kind), queue, kind, p_now, -count(*), count(*)
        FROM named GROUP BY queue, kind
    ), l AS (
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
        SELECT 0, '', '', '', min(rank), 0, lock FROM named WHERE lock IS NOT NULL GROUP BY lock
    )
    INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
    SELECT DISTINCT ON (lane) lane, queue, kind, host, rank, id FROM named WHERE lock IS NULL
    ORDER BY lane, rank, id $$;

-- Lanes that this pool may take from, best first. One index probe a class with ready work.
CREATE OR REPLACE FUNCTION pawl.ready_lanes(p_kinds text[], p_queues text[], p_max integer)
RETURNS TABLE (lane bigint, rank integer, turn bigint, head bigint, policy bigint, gates bigint[])
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE ready AS (
        (SELECT class, queue, kind FROM pawl.lane WHERE head IS NOT NULL AND parked IS NULL
         ORDER BY class LIMIT 1)
        UNION ALL
        SELECT n.class, n.queue, n.kind FROM ready r CROSS JOIN LATERAL
            (SELECT class, queue, kind FROM pawl.lane
             WHERE head IS NOT NULL AND parked IS NULL AND class > r.class
             ORDER BY class LIMIT 1) n
    ), admitted AS MATERIALIZED (
        SELECT r.class FROM ready r
        WHERE r.kind = ANY (p_kinds) AND (p_queues IS NULL OR r.queue = ANY (p_queues))
          AND NOT EXISTS (SELECT 1 FROM pawl.queue q WHERE q.name = r.queue AND q.paused_at IS NOT NULL)
    )
    SELECT l.id, l.rank, l.turn, l.head, l.policy, l.gates
    FROM admitted r CROSS JOIN LATERAL
         (SELECT id, rank, turn, head, policy, gates FROM pawl.lane x
          WHERE x.class = r.class AND x.head IS NOT NULL AND x.parked IS NULL
          ORDER BY x.rank, x.turn, x.head LIMIT p_max) l
    ORDER BY l.rank, l.turn, l.head LIMIT p_max $$;

-- What a lane's head has become, read without locks after the lane's own: jobs that others are just
-- taking still count, so a head is never behind a job whose taker rolls back.
CREATE OR REPLACE FUNCTION pawl.correct_heads(p_lanes bigint[], p_now bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    locked bigint[];
    n integer;
BEGIN
    SELECT array_agg(l.id) INTO locked
    FROM (SELECT id FROM pawl.lane WHERE id = ANY (p_lanes) ORDER BY id FOR UPDATE SKIP LOCKED) l;
    UPDATE pawl.lane l SET rank = coalesce(b.rank, l.rank), head = b.id, head_at = p_now
    FROM pawl.lane o LEFT JOIN LATERAL
         (SELECT j.rank, j.id FROM pawl.job j
          WHERE j.lane = o.id AND j.state = 1 AND (j.rank, j.id) >= (o.rank, o.head)
          ORDER BY j.rank, j.id LIMIT 1) b ON true
    WHERE o.id = ANY (locked) AND o.head IS NOT NULL AND l.id = o.id
      AND (b.id IS NULL OR (b.rank, b.id) <> (o.rank, o.head));
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

-- Serving lanes in fair order sends them behind all others of their rank. The caller has them locked.
-- Turns: null for one that was not served.
CREATE OR REPLACE FUNCTION pawl.serve_lanes(p_lanes bigint[], p_turns bigint[], p_now bigint)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n integer;
BEGIN
    UPDATE pawl.lane l SET rank = coalesce(x.rank, l.rank), head = x.head, head_at = p_now,
        turn = coalesce(x.turn, l.turn)
    FROM (SELECT u.turn, o.id, b.rank, b.id AS head
          FROM unnest(p_lanes, p_turns) u (lane, turn) CROSS JOIN LATERAL
               (SELECT id, rank, head FROM pawl.lane WHERE lane.id = u.lane OFFSET 0) o
               LEFT JOIN LATERAL
               (SELECT j.rank, j.id FROM pawl.job j
                WHERE j.lane = o.id AND j.state = 1 AND (j.rank, j.id) >= (o.rank, o.head)
                ORDER BY j.rank, j.id LIMIT 1) b ON true) x
    WHERE l.id = x.id AND (x.turn IS NOT NULL OR x.head IS NULL OR (x.rank, x.head) <> (l.rank, l.head));
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

-- The ids of the best ready jobs of one pool, marked as taken (I3, I11). Jobs are looked for from
-- the lane's head on, so what was taken before it, dead rows included, costs nothing. Lanes are
-- opened a few at a time; only jobs ahead of the first lane that is still closed are taken.
-- In fair order lanes take turns within one rank; they are locked, so that no two claims serve one of them
-- at a time.
-- Where lanes have gates (I7) these are locked, their room is counted in the next statement, which sees
-- all that was committed before, and a job is taken if at each gate of its lane it is within the room,
-- counted from the best candidate on. So none takes what a better one could have had; those that are left
-- are looked at again. A lane whose gate is shut is parked; one whose gate another claim has is left to
-- it (`busy`). The last p_ahead are to wait in the worker: only jobs without gates and locks.
CREATE OR REPLACE FUNCTION pawl.take(p_session bigint, p_kinds text[], p_queues text[], p_want integer,
                                     p_ahead integer, p_now bigint, p_policy bigint, p_fair boolean,
                                     OUT taken bigint[], OUT busy boolean, OUT gated boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t bigint := p_now; -- of what is taken: after the gates' locks, so not before what made room
    width integer := CASE WHEN p_fair THEN least(greatest(p_want, 16), 4096)
                          ELSE least(greatest(p_want, 4), 16) END;
    want integer := p_want;
    lanes bigint[]; ranks integer[]; turns bigint[]; heads bigint[]; depths integer[];
    gates text[]; caps integer[];                         -- of each lane; how many it may take
    ids bigint[]; id_ranks integer[]; id_lanes integer[]; -- candidates in order; index of their lane
    id_locks boolean[]; chosen boolean[];
    bound_rank integer; bound_turn bigint; bound_id bigint;
    n integer; n_best integer; n_left integer; i integer; deep integer; most integer; upto integer;
    opened integer;
    open integer[];
    stale bigint[]; served bigint[];
    old bigint[]; skipped bigint[] := '{}';               -- lanes of other limits; lanes left alone
    some_gated boolean; all_gated boolean; met_new boolean; only_free boolean := false;
    others boolean;                                       -- have lanes of these, or their gates
    met bigint[] := '{}'; rooms integer[] := '{}'; untils bigint[] := '{}'; -- gates locked, rising
    counts integer[] := '{}'; firsts bigint[] := '{}'; writes boolean[] := '{}';
    refused bigint[] := '{}';                             -- gates that others have
    fresh bigint[]; locked bigint[]; parking bigint[]; park_on bigint[]; park_until bigint[];
BEGIN
    taken := '{}'; busy := false; gated := false;
    FOR round IN 1 .. 1000 LOOP
        SELECT array_agg(r.lane), array_agg(r.rank), array_agg(r.turn), array_agg(r.head),
               array_agg(r.gates::text), bool_or(r.gates <> '{}'),
               array_agg(r.lane) FILTER (WHERE r.policy <> p_policy AND NOT r.lane = ANY (skipped))
        INTO lanes, ranks, turns, heads, gates, some_gated, old
        FROM pawl.ready_lanes(p_kinds, p_queues, width + 1) r;
        EXIT WHEN lanes IS NULL;
        IF old IS NOT NULL THEN -- their gates are those of other limits
            IF pg_try_advisory_xact_lock(pawl.name_id('pawl.lane', '')) THEN
                PERFORM pawl.map_lanes(old, p_policy);
            END IF;
            SELECT skipped || array_agg(l.id), busy OR count(*) > 0 INTO skipped, busy
            FROM pawl.lane l WHERE l.id = ANY (old) AND l.policy <> p_policy;
            CONTINUE;
        END IF;
        n := cardinality(lanes);
        bound_rank := NULL; bound_id := NULL; others := false;
        IF n > width THEN
            bound_rank := ranks[n]; bound_turn := turns[n]; bound_id := heads[n];
            n := width;
            lanes := lanes[1:n]; ranks := ranks[1:n]; heads := heads[1:n];
        END IF;
        IF p_fair THEN
            -- What has gates is not taken ahead: no more of it is kept from others than may start.
            most := CASE WHEN '{}' = ANY (gates) THEN n ELSE greatest(want - p_ahead, 1) END;
            SELECT coalesce(array_agg(l.id), '{}') INTO locked
            FROM (SELECT id FROM pawl.lane WHERE id = ANY (lanes) ORDER BY rank, turn, head LIMIT most
                  FOR UPDATE SKIP LOCKED) l;
            IF cardinality(locked) = most AND most < n THEN
                SELECT max(u.o) INTO upto
                FROM unnest(lanes) WITH ORDINALITY u (lane, o) JOIN unnest(locked) x ON x = u.lane;
                IF upto < n THEN
                    bound_rank := ranks[upto + 1]; bound_turn := turns[upto + 1];
                    bound_id := heads[upto + 1];
                    n := upto;
                END IF;
            END IF;
            others := cardinality(locked) < n;
            PERFORM pawl.correct_heads(locked, p_now);
            SELECT array_agg(l.id ORDER BY l.rank, l.turn, l.head),
                   array_agg(l.rank ORDER BY l.rank, l.turn, l.head),
                   array_agg(l.turn ORDER BY l.rank, l.turn, l.head),
                   array_agg(l.head ORDER BY l.rank, l.turn, l.head),
                   array_agg(l.gates::text ORDER BY l.rank, l.turn, l.head)
            INTO lanes, ranks, turns, heads, gates
            FROM pawl.lane l
            WHERE l.id = ANY (locked) AND l.parked IS NULL AND l.head IS NOT NULL AND l.policy = p_policy
              AND (NOT others OR l.turn < p_now) -- nobody a second time while others have theirs in hand
              AND (bound_rank IS NULL OR (l.rank, l.turn, l.head) < (bound_rank, bound_turn, bound_id));
        END IF;
        caps := NULL; met_new := false; parking := NULL;
        IF some_gated OR skipped <> '{}' THEN
            SELECT array_agg(DISTINCT x) INTO fresh
            FROM unnest(lanes, gates) u (lane, gates), unnest(u.gates::bigint[]) x
            WHERE u.lane IS NOT NULL AND NOT only_free
              AND pawl.place(x, met) IS NULL AND pawl.place(x, refused) IS NULL;
            IF fresh IS NOT NULL THEN
                met_new := true;
                SELECT array_agg(l.id) INTO locked
                FROM (SELECT id FROM pawl.gate WHERE id = ANY (fresh) ORDER BY id
                      FOR UPDATE SKIP LOCKED) l;
                t := pawl.now_us();
                SELECT coalesce(array_agg(m.id ORDER BY m.id), '{}'), array_agg(m.room ORDER BY m.id),
                       array_agg(m.until ORDER BY m.id), array_agg(m.n ORDER BY m.id),
                       array_agg(m.first ORDER BY m.id), array_agg(m.writes ORDER BY m.id)
                INTO met, rooms, untils, counts, firsts, writes
                FROM (SELECT * FROM unnest(met, rooms, untils, counts, firsts, writes)
                             u (id, room, until, n, first, writes)
                      UNION ALL
                      SELECT r.id, r.room, r.until, 0, 0, r.writes
                      FROM pawl.rooms(locked, p_want, t) r) m;
                IF coalesce(cardinality(locked), 0) < cardinality(fresh) THEN
                    SELECT array_agg(x ORDER BY x) INTO refused
                    FROM (SELECT unnest(refused) UNION
                          SELECT x FROM unnest(fresh) x WHERE pawl.place(x, met) IS NULL) u (x);
                END IF;
            END IF;
            -- What may go stays; what meets a shut gate is parked.
            SELECT array_agg(s.lane) FILTER (WHERE s.free AND s.shut IS NOT NULL),
                   array_agg(s.shut) FILTER (WHERE s.free AND s.shut IS NOT NULL),
                   array_agg(untils[pawl.place(s.shut, met)]) FILTER (WHERE s.free AND s.shut IS NOT NULL),
                   others OR coalesce(bool_or(s.busy), false),
                   array_agg(s.lane ORDER BY s.i) FILTER (WHERE s.free AND s.shut IS NULL),
                   array_agg(s.rank ORDER BY s.i) FILTER (WHERE s.free AND s.shut IS NULL),
                   array_agg(s.turn ORDER BY s.i) FILTER (WHERE s.free AND s.shut IS NULL),
                   array_agg(s.head ORDER BY s.i) FILTER (WHERE s.free AND s.shut IS NULL),
                   array_agg(s.gates ORDER BY s.i) FILTER (WHERE s.free AND s.shut IS NULL),
                   array_agg(s.room ORDER BY s.i) FILTER (WHERE s.free AND s.shut IS NULL)
            INTO parking, park_on, park_until, others, lanes, ranks, turns, heads, gates, caps
            FROM (SELECT u.*, x.*, NOT (x.busy OR u.lane = ANY (skipped)
                                        OR (only_free AND u.gates <> '{}')) AS free
                  FROM unnest(lanes, ranks, turns, heads, gates) WITH ORDINALITY
                       u (lane, rank, turn, head, gates, i) CROSS JOIN LATERAL
                       (SELECT coalesce(bool_or(y.at IS NULL), false) AS busy,
                               min(y.gate) FILTER (WHERE rooms[y.at] = 0) AS shut,
                               coalesce(min(rooms[y.at]), want) AS room
                        FROM (SELECT gate, pawl.place(gate, met) AS at
                              FROM unnest(u.gates::bigint[]) gate) y) x
                  WHERE u.lane IS NOT NULL) s;
            IF parking IS NOT NULL THEN
                skipped := skipped || pawl.park(parking, park_on, park_until, t);
            END IF;
        END IF;
        n := coalesce(cardinality(lanes), 0);
        busy := busy OR others;
        ids := NULL; chosen := NULL; n_best := 0; n_left := 0; stale := NULL;
        IF n > 0 AND p_fair THEN
            SELECT count(*) INTO n FROM unnest(ranks) x WHERE x = ranks[1];
            -- More than one round at once only if nobody else could be due in between.
            deep := CASE WHEN others OR skipped <> '{}' OR bound_rank <= ranks[1] THEN 1
                         ELSE (want + n - 1) / n END;
            SELECT array_agg(c.id ORDER BY c.nth, c.i), array_agg(c.rank ORDER BY c.nth, c.i),
                   array_agg(c.i ORDER BY c.nth, c.i), array_agg(c.locked ORDER BY c.nth, c.i), count(*)
            INTO ids, id_ranks, id_lanes, id_locks, n_best
            FROM (SELECT c.id, c.rank, u.i, c.lock IS NOT NULL AS locked,
                         row_number() OVER (PARTITION BY u.i ORDER BY c.id) AS nth
                  FROM unnest(lanes[1:n], heads[1:n]) WITH ORDINALITY u (lane, head, i)
                       CROSS JOIN LATERAL
                       (SELECT j.id, j.rank, j.lock FROM pawl.job j
                        WHERE j.lane = u.lane AND j.state = 1
                          AND (j.rank, j.id) >= (ranks[1], u.head) AND j.rank = ranks[1]
                        ORDER BY j.rank, j.id LIMIT least(deep, want, caps[u.i])
                        FOR UPDATE SKIP LOCKED) c) c;
        ELSIF n > 0 THEN
            SELECT array_agg(least(CASE WHEN n = 1 AND bound_rank IS NULL THEN want ELSE 2 END, want,
                                   caps[x]) ORDER BY x)
            INTO depths FROM generate_series(1, n) x;
            LOOP
                SELECT array_agg(c.id), array_agg(c.rank), array_agg(c.i), array_agg(c.locked), count(*)
                INTO ids, id_ranks, id_lanes, id_locks, n_best
                FROM (SELECT c.id, c.rank, u.i, c.lock IS NOT NULL AS locked
                      FROM unnest(lanes, ranks, heads, depths) WITH ORDINALITY
                           u (lane, rank, head, depth, i) CROSS JOIN LATERAL
                           (SELECT j.id, j.rank, j.lock FROM pawl.job j
                            WHERE j.lane = u.lane AND j.state = 1 AND (j.rank, j.id) >= (u.rank, u.head)
                              AND (j.rank, j.id) < (coalesce(bound_rank, 2147483647),
                                                    coalesce(bound_id, 9223372036854775807))
                            ORDER BY j.rank, j.id LIMIT u.depth FOR UPDATE SKIP LOCKED) c
                      ORDER BY c.rank, c.id) c;
                EXIT WHEN n = 1 AND bound_rank IS NULL;
                -- A lane that may have more that belongs among the best wanted is looked at deeper.
                SELECT array_agg(g.lane) INTO open
                FROM (SELECT c.lane, count(*) AS got,
                             (array_agg(c.rank ORDER BY c.rank DESC, c.id DESC))[1] AS rank,
                             (array_agg(c.id ORDER BY c.rank DESC, c.id DESC))[1] AS id
                      FROM unnest(ids, id_ranks, id_lanes) c (id, rank, lane) GROUP BY c.lane) g
                WHERE g.got = depths[g.lane] AND depths[g.lane] < least(want, caps[g.lane])
                  AND (cardinality(ids) < want OR (g.rank, g.id) < (id_ranks[want], ids[want]));
                EXIT WHEN open IS NULL;
                FOREACH i IN ARRAY open LOOP
                    depths[i] := least(depths[i] * 8, want, caps[i]);
                END LOOP;
            END LOOP;
        END IF;
        all_gated := caps IS NOT NULL AND NOT '{}' = ANY (gates);
        IF all_gated AND want - p_ahead <= 0 THEN
            only_free := only_free OR n_best > 0;
            fresh := '{}'; n_best := 0;
        ELSIF n_best > 0 AND all_gated AND (SELECT min(x) FROM unnest(caps) x) >= want - p_ahead THEN
            -- No gate can be too small for all that may start.
            only_free := only_free OR n_best > want - p_ahead;
            n_best := least(n_best, want - p_ahead);
            fresh := ids[1:n_best];
        ELSIF n_best > 0 AND (caps IS NOT NULL OR (p_ahead > 0 AND true = ANY (id_locks))) THEN
            -- Within the room of each gate; gated and locked ones only among the first.
            SELECT array_agg(coalesce(c.nth <= want, false) ORDER BY c.o),
                   count(*) FILTER (WHERE NOT c.room),
                   only_free OR coalesce(bool_or(c.room AND NOT c.may), false)
            INTO chosen, n_left, only_free
            FROM (SELECT f.*, CASE WHEN f.may THEN
                                  row_number() OVER (PARTITION BY f.may ORDER BY f.o) END AS nth
                  FROM (SELECT r.o, r.room, r.room AND (NOT r.firm OR r.nth <= want - p_ahead) AS may
                        FROM (SELECT c.*, row_number() OVER (PARTITION BY c.room ORDER BY c.o) AS nth
                              FROM (SELECT x.o, bool_and(x.gate IS NULL OR x.nth <= rooms[x.gate]) AS room,
                                           bool_or(x.gate IS NOT NULL OR id_locks[x.o]) AS firm
                                    FROM (SELECT c.o, pawl.place(y, met) AS gate,
                                                 row_number() OVER (PARTITION BY y ORDER BY c.o) AS nth
                                          FROM unnest(id_lanes[1:n_best]) WITH ORDINALITY c (i, o)
                                               LEFT JOIN LATERAL unnest(gates[c.i]::bigint[]) y ON true) x
                                    GROUP BY x.o) c) r) f) c;
            SELECT coalesce(array_agg(u.id ORDER BY u.o), '{}') INTO fresh
            FROM unnest(ids[1:n_best], chosen) WITH ORDINALITY u (id, ok, o) WHERE u.ok;
        ELSIF n_best > 0 THEN
            n_best := least(n_best, want);
            fresh := ids[1:n_best];
        ELSE
            fresh := '{}';
        END IF;
        IF fresh <> '{}' THEN
            t := pawl.now_us(); -- not before any end of a lease that made room and was seen
            UPDATE pawl.job SET state = 3, attempt = attempt + 1, fence = fence + 1,
                owner = p_session, claimed_at = t
            WHERE id = ANY (fresh);
            taken := taken || fresh;
            want := want - cardinality(fresh);
        END IF;
        IF all_gated AND fresh <> '{}' AND chosen IS NULL AND NOT true = ANY (writes)
           AND (SELECT min(x) FROM unnest(rooms) x) >= p_want THEN
            INSERT INTO pawl.permit (job, gate)
            SELECT ids[c.o], y
            FROM unnest(id_lanes[1:n_best]) WITH ORDINALITY c (i, o), unnest(gates[c.i]::bigint[]) y;
            gated := true;
        ELSIF caps IS NOT NULL AND fresh <> '{}' THEN
            WITH p AS (
                INSERT INTO pawl.permit (job, gate)
                SELECT ids[c.o], y
                FROM unnest(id_lanes[1:n_best], chosen) WITH ORDINALITY c (i, ok, o),
                     unnest(gates[c.i]::bigint[]) y
                WHERE c.ok OR chosen IS NULL RETURNING job, gate
            )
            SELECT gated OR count(*) > 0, array_agg(m.room - coalesce(p.n, 0) ORDER BY m.i),
                   array_agg(m.n + coalesce(p.n, 0) ORDER BY m.i),
                   array_agg(CASE WHEN m.n > 0 THEN m.first ELSE p.first END ORDER BY m.i)
            INTO gated, rooms, counts, firsts
            FROM unnest(rooms, counts, firsts) WITH ORDINALITY m (room, n, first, i)
                 LEFT JOIN (SELECT pawl.place(p.gate, met) AS at, count(*) AS n,
                                   (array_agg(p.job ORDER BY array_position(fresh, p.job)))[1] AS first
                            FROM p GROUP BY p.gate) p ON p.at = m.i;
        END IF;
        -- Heads of lanes that were taken from, ran dry or were behind their hint are put right: at once
        -- where lanes are left closed, because the order between them depends on it, else now and
        -- then, so that a lane's row is not rewritten by every claim.
        IF n > 0 AND p_fair THEN
            SELECT array_agg(lanes[x]), array_agg(p_now + p_want - want - cardinality(fresh) + c.last - 1)
            INTO stale, served
            FROM generate_series(1, n) x LEFT JOIN
                 (SELECT c.i, max(array_position(fresh, ids[c.o])) AS last, min(ids[c.o]) AS id
                  FROM unnest(id_lanes) WITH ORDINALITY c (i, o) GROUP BY c.i) c ON c.i = x
            WHERE c.i IS NULL OR c.last IS NOT NULL OR c.id <> heads[x];
            n := 0;
            IF stale IS NOT NULL THEN
                n := pawl.serve_lanes(stale, served, p_now);
            END IF;
        ELSIF n > 0 THEN
            SELECT array_agg(lanes[x.i]) INTO stale
            FROM (SELECT g.lane AS i
                  FROM (SELECT c.lane, min(c.o) AS o FROM unnest(id_lanes) WITH ORDINALITY c (lane, o)
                        GROUP BY c.lane) g
                  WHERE (id_ranks[g.o], ids[g.o]) <> (ranks[g.lane], heads[g.lane])
                     OR CASE WHEN chosen IS NULL THEN g.o <= n_best ELSE chosen[g.o] END
                  UNION ALL
                  (SELECT generate_subscripts(lanes, 1) EXCEPT SELECT unnest(id_lanes))) x;
            IF bound_rank IS NULL THEN
                SELECT array_agg(l.id) INTO stale FROM pawl.lane l
                WHERE l.id = ANY (stale) AND l.head_at < p_now - 200000;
            END IF;
            n := 0;
            IF stale IS NOT NULL THEN
                n := pawl.correct_heads(stale, p_now);
            END IF;
        END IF;
        EXIT WHEN want = 0 OR (only_free AND fresh = '{}');
        opened := coalesce(cardinality(lanes), 0);
        IF fresh = '{}' AND n = 0 AND parking IS NULL THEN
            busy := busy OR (bound_rank IS NOT NULL AND width >= 4096); -- others have what these have
            EXIT WHEN bound_rank IS NULL OR width >= 4096 OR (opened = 0 AND NOT met_new AND NOT p_fair);
        ELSIF bound_rank IS NULL AND NOT p_fair THEN
            EXIT WHEN n_left = 0;
        END IF;
        CONTINUE WHEN p_fair AND fresh <> '{}';
        -- As many as may have what is still wanted, by what these had.
        width := CASE WHEN fresh = '{}' THEN width * 4
                      ELSE least(greatest(want * opened / cardinality(fresh), 4),
                                 greatest(want, width * 4)) END;
        width := least(width, 4096);
    END LOOP;
    IF true = ANY (writes) AND taken <> '{}' THEN
        PERFORM pawl.gates_taken(array_agg(u.gate), array_agg(u.n), array_agg(u.first), p_session, t)
        FROM unnest(met, counts, firsts, writes) u (gate, n, first, writes)
        WHERE u.writes AND u.n > 0 HAVING count(*) > 0;
    END IF;
END $$;

-- One job by its id, by the normal rules.
CREATE OR REPLACE FUNCTION pawl.take_only(p_session bigint, p_kinds text[], p_queues text[], p_only bigint,
                                          p_now bigint, p_policy bigint, OUT taken bigint[],
                                          OUT busy boolean, OUT gated boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t bigint := p_now;
    l record;
    r record;
    locked bigint[];
BEGIN
    taken := '{}'; busy := false; gated := false;
    SELECT j.lane AS id INTO l FROM pawl.job j JOIN pawl.body b ON b.id = j.id
    WHERE j.id = p_only AND j.state = 1 AND b.kind = ANY (p_kinds)
      AND (p_queues IS NULL OR b.queue = ANY (p_queues))
      AND NOT EXISTS (SELECT 1 FROM pawl.queue q WHERE q.name = b.queue AND q.paused_at IS NOT NULL)
    FOR UPDATE OF j SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM pawl.lane x WHERE x.id = l.id AND x.policy <> p_policy)
       AND pg_try_advisory_xact_lock(pawl.name_id('pawl.lane', '')) THEN
        PERFORM pawl.map_lanes(ARRAY[l.id], p_policy);
    END IF;
    SELECT x.id, x.gates INTO l FROM pawl.lane x WHERE x.id = l.id AND x.policy = p_policy;
    busy := NOT FOUND;
    IF busy THEN
        RETURN;
    END IF;
    IF l.gates <> '{}' THEN
        SELECT array_agg(g.id) INTO locked
        FROM (SELECT id FROM pawl.gate WHERE id = ANY (l.gates) ORDER BY id FOR UPDATE SKIP LOCKED) g;
        t := pawl.now_us();
        busy := coalesce(cardinality(locked), 0) < cardinality(l.gates);
        IF busy THEN
            RETURN;
        END IF;
        SELECT x.id, x.until INTO r FROM pawl.rooms(locked, 1, t) x
        WHERE x.room = 0 ORDER BY x.id LIMIT 1;
        IF FOUND THEN
            PERFORM pawl.park(ARRAY[l.id], ARRAY[r.id], ARRAY[r.until], t);
            RETURN;
        END IF;
        INSERT INTO pawl.permit (job, gate) SELECT p_only, unnest(l.gates);
        gated := true;
    END IF;
    t := pawl.now_us();
    UPDATE pawl.job SET state = 3, attempt = attempt + 1, fence = fence + 1, owner = p_session,
        claimed_at = t
    WHERE id = p_only;
    taken := ARRAY[p_only];
    IF gated THEN
        PERFORM pawl.gates_taken(l.gates, array_fill(1, ARRAY[cardinality(l.gates)]),
                                 array_fill(p_only, ARRAY[cardinality(l.gates)]), p_session, t);
    END IF;
END $$;

-- The claim (I2, I3): several statements, each with a fresh snapshot, one round trip. The last row
-- has id 0 and carries what is not a job: fence 1 = the session is stale; attempt 1 = busy, look
-- again soon; available_at = when the next waiting job is due or a gate opens, or null; created_at = now;
-- lane = up to which wake none is left. policy: the number of the limits, or -1 minus it for a job with permits
-- or a lock; null: as in the last row. Null are also transient, lost and pool that are 0: what need not be
-- sent costs nothing.
CREATE OR REPLACE FUNCTION pawl.claim(p_session bigint, p_kinds text[], p_pools integer[],
                                      p_wants integer[], p_aheads integer[], p_queues text[],
                                      p_only bigint, p_wakes_from bigint)
RETURNS TABLE (id bigint, fence bigint, rank integer, attempt integer, transient integer,
               lost integer, available_at bigint, lane bigint, pool integer, queue text, kind text,
               host text, key text, payload text, created_at bigint, max_attempts integer,
               timeout_us bigint, claimed_at bigint, policy bigint)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    t bigint;
    asked smallint;
    next bigint;
    wakes record;
    l record;
    got record;
    n integer;
    busy boolean;
    some_gated boolean := false;
    taken bigint[] := '{}';
    kinds text[];
    alone boolean := cardinality(array_remove(p_wants, 0)) = 1; -- one pool asks
BEGIN
    PERFORM 1 FROM pawl.session s WHERE s.id = p_session FOR KEY SHARE;
    t := pawl.now_us();
    SELECT s.command INTO asked FROM pawl.session s
    WHERE s.id = p_session AND s.ended_at IS NULL AND s.lease_until > t;
    IF NOT FOUND OR asked IN (1, 4) THEN -- gone; or asked to pause or stop, heard or not
        RETURN QUERY SELECT 0::bigint, (asked IS NULL)::int::bigint, 0, 0, 0, 0, NULL::bigint, 0::bigint, 0,
            NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, t, NULL::int, NULL::bigint, t,
            0::bigint;
        RETURN;
    END IF;
    SELECT j.available_at INTO next FROM pawl.job j WHERE j.state = 2 ORDER BY j.available_at LIMIT 1;
    IF next <= t THEN
        PERFORM pawl.promote(t);
        SELECT j.available_at INTO next FROM pawl.job j WHERE j.state = 2
        ORDER BY j.available_at LIMIT 1;
    END IF;
    SELECT f.* INTO wakes FROM pawl.fold_wakes(p_wakes_from) f;
    busy := wakes.busy;
    t := pawl.now_us(); -- not before the end of the lease that made a lock free
    IF wakes.gates IS NOT NULL OR EXISTS (SELECT 1 FROM pawl.gate g WHERE g.wake_at <= t) THEN
        PERFORM pawl.unpark(p_wakes_from, wakes.newest, wakes.gates, t, wakes.policy)
        WHERE wakes.policy IS NOT NULL;
        -- A gate that another claim has: that one may not see the permit that was freed.
        busy := busy OR EXISTS (SELECT 1 FROM pawl.wake w WHERE w.id BETWEEN p_wakes_from AND wakes.newest
                                AND w.gate = ANY (wakes.gates));
    END IF;
    FOR p IN 1 .. cardinality(p_wants) LOOP
        CONTINUE WHEN p_wants[p] <= 0 OR wakes.policy IS NULL;
        SELECT array_agg(k) INTO kinds FROM unnest(p_kinds, p_pools) u (k, i) WHERE i = p - 1;
        IF p_only IS NOT NULL THEN
            SELECT o.* INTO got FROM pawl.take_only(p_session, kinds, p_queues, p_only, t, wakes.policy) o;
            taken := taken || got.taken;
            busy := busy OR got.busy; some_gated := some_gated OR got.gated;
            CONTINUE;
        END IF;
        SELECT min(r.lane) AS id, min(r.rank) AS rank, min(r.head) AS head, count(*) AS n,
               bool_or(r.policy <> wakes.policy OR r.gates <> '{}') AS gated INTO l
        FROM pawl.ready_lanes(kinds, p_queues, 2) r WHERE alone AND NOT wakes.fair;
        IF l.n <> 1 OR l.gated OR (p_aheads[p] > 0 AND EXISTS
               (SELECT 1 FROM pawl.job j WHERE j.lock IS NOT NULL AND j.state IN (1, 3))) THEN
            SELECT o.* INTO got FROM pawl.take(p_session, kinds, p_queues, p_wants[p], p_aheads[p], t,
                                               wakes.policy, wakes.fair) o;
            taken := taken || got.taken;
            busy := busy OR got.busy; some_gated := some_gated OR got.gated;
            CONTINUE;
        END IF;
        -- One lane: taken, told and returned by one statement.
        RETURN QUERY
        WITH up AS (
            UPDATE pawl.job SET state = 3, attempt = attempt + 1, fence = fence + 1,
                owner = p_session, claimed_at = (SELECT pawl.now_us())
            WHERE id = ANY (ARRAY
                (SELECT j.id FROM pawl.job j
                 WHERE j.lane = l.id AND j.state = 1 AND (j.rank, j.id) >= (l.rank, l.head)
                 ORDER BY j.rank, j.id LIMIT p_wants[p] FOR UPDATE SKIP LOCKED))
            RETURNING id, fence, rank, aged, attempt, transient, lost, available_at, lane, lock, claimed_at
        ), o AS MATERIALIZED (
            SELECT * FROM up ORDER BY up.rank, up.id
        ), e AS (
            INSERT INTO pawl.event (at, type, job, fence, session)
            SELECT o.claimed_at, 2, o.id, o.fence, p_session FROM o
        )
        SELECT o.id, o.fence, o.rank + o.aged, o.attempt, nullif(o.transient, 0), nullif(o.lost, 0),
               o.available_at, o.lane, nullif(p, 1) - 1, b.queue, b.kind, nullif(b.host, ''), b.key, b.payload,
               b.created_at, b.max_attempts, b.timeout_us, o.claimed_at,
               CASE WHEN o.lock IS NOT NULL THEN -wakes.policy - 1 END
        FROM o CROSS JOIN LATERAL (SELECT * FROM pawl.body WHERE body.id = o.id OFFSET 0) b;
        GET DIAGNOSTICS n = ROW_COUNT;
        INSERT INTO pawl.delta (class, queue, kind, at, n_queued, n_running)
        SELECT x.class, x.queue, x.kind, t, -n, n FROM pawl.lane x WHERE x.id = l.id AND n > 0;
        -- The head is put right now and then, so that its row is not rewritten by every claim: while
        -- somebody holds an old snapshot each version of it would have to be walked over.
        PERFORM pawl.correct_heads(ARRAY[x.id], t) FROM pawl.lane x
        WHERE x.id = l.id AND x.head_at < t - 200000;
    END LOOP;
    IF taken <> '{}' THEN
        RETURN QUERY
        WITH o AS MATERIALIZED (
            SELECT j.id, j.fence, j.rank, j.aged, j.attempt, j.transient, j.lost, j.available_at, j.lane,
                   j.lock, j.claimed_at, b.queue, b.kind, b.host, b.key, b.payload, b.created_at,
                   b.max_attempts, b.timeout_us, CASE WHEN wakes.fair THEN x.o ELSE 0 END AS o
            FROM unnest(taken) WITH ORDINALITY x (id, o)
                 CROSS JOIN LATERAL (SELECT * FROM pawl.job WHERE job.id = x.id OFFSET 0) j
                 CROSS JOIN LATERAL (SELECT * FROM pawl.body WHERE body.id = x.id OFFSET 0) b
        ), e AS (
            INSERT INTO pawl.event (at, type, job, fence, session)
            SELECT o.claimed_at, 2, o.id, o.fence, p_session FROM o ORDER BY o.o, o.rank, o.id
        ), d AS (
            INSERT INTO pawl.delta (class, queue, kind, at, n_queued, n_running)
            SELECT pawl.name_id(o.queue, o.kind), o.queue, o.kind, t, -count(*), count(*)
            FROM o GROUP BY o.queue, o.kind
        )
        SELECT o.id, o.fence, o.rank + o.aged, o.attempt, o.transient, o.lost, o.available_at, o.lane,
               p_pools[array_position(p_kinds, o.kind)], o.queue, o.kind, nullif(o.host, ''), o.key,
               o.payload, o.created_at, o.max_attempts, o.timeout_us, o.claimed_at,
               CASE WHEN o.lock IS NOT NULL OR (some_gated AND EXISTS
                         (SELECT 1 FROM pawl.permit p WHERE p.job = o.id))
                    THEN -wakes.policy - 1 ELSE wakes.policy END
        FROM o ORDER BY o.o, o.rank, o.id;
    END IF;
    RETURN QUERY SELECT 0::bigint, 0::bigint, 0, busy::int, 0, 0,
        least(next, (SELECT greatest(g.wake_at, t + 2000) FROM pawl.gate g WHERE g.wake_at IS NOT NULL
                     ORDER BY g.wake_at LIMIT 1)),
        -- Not beyond what is left, which nobody else may look at: all of them are seldom looked at.
        CASE WHEN busy THEN least(wakes.newest, (SELECT min(w.id) - 1 FROM pawl.wake w
                                                 WHERE w.id >= p_wakes_from))
             ELSE wakes.newest END,
        0, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, t, NULL::int,
        NULL::bigint, t, wakes.policy;
END $$;

-- Ends leases, gated on (id, fence, running) (I2). Ids rise and none is there twice; p_ords says where
-- each was in the batch, which is the order of its events and what is returned of those that were
-- still held. Outcomes and classes by number as in job.h; flags: 1 the attempt is not spent, 2 it
-- counts as transient, 4 the lease was lost. No number is null: 0 for no time, no log, -1 for no exit
-- status. Of classes, flags, reasons, exits, delays, log_bytes, prints and retry_after the whole array may be
-- null: nobody has one. p_policy: none of them has permits, if the limits are still those of this number; -1: unknown.
-- p_signals: what each end says of the peer (enum gate_signal); p_peers: the host of that one, null: the
-- job's own, or null: all of them. Whatever is to come back is locked first,
-- because a wish to cancel it must not slip in between: a job asked to end does not come back.
-- The job's row is found by its id alone, never by a join, which the planner could turn around;
-- `state + 0` keeps it from the index of all running jobs, width_bucket finds the place in the arrays. It
-- would copy an array that is a variable here for every row; `flat` is the array as a value.
CREATE OR REPLACE FUNCTION pawl.settle(p_ids bigint[], p_fences bigint[], p_ords integer[],
                            p_outcomes integer[], p_classes integer[], p_flags integer[], p_reasons integer[],
                            p_exits integer[], p_delays bigint[], p_started bigint[],
                            p_log_bytes bigint[], p_prints bigint[], p_errors text[],
                            p_results text[], p_signals integer[], p_retry_after bigint[],
                            p_policy bigint, p_peers text[])
RETURNS SETOF integer LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    t bigint := pawl.now_us();
    some_back boolean := p_outcomes && ARRAY[3, 4, 6];
    ended_at integer[]; claimed bigint[]; -- those that were held: places in the arrays, claim times
    lanes bigint[];                       -- of those, and whether one was admitted to other hosts
    elsewhere boolean;
    jobs bigint[]; gates bigint[];        -- their permits, a pair each
    asides boolean[]; sinces bigint[];    -- of each pair, see tell_gates
BEGIN
    IF some_back THEN
        p_flags := coalesce(p_flags, array_fill(0, ARRAY[cardinality(p_ids)]));
        p_reasons := coalesce(p_reasons, array_fill(0, ARRAY[cardinality(p_ids)]));
        p_delays := coalesce(p_delays, array_fill(0::bigint, ARRAY[cardinality(p_ids)]));
        PERFORM 1 FROM (SELECT id FROM pawl.job WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE) l;
        SELECT array_agg(CASE WHEN u.outcome IN (3, 4, 6) AND EXISTS
                                   (SELECT 1 FROM pawl.cancel_ask k
                                    WHERE k.job = u.id AND k.fence = u.fence)
                              THEN 5 ELSE u.outcome END ORDER BY u.i)
        INTO p_outcomes
        FROM unnest(p_ids, p_fences, p_outcomes) WITH ORDINALITY u (id, fence, outcome, i);
    END IF;
    WITH flat AS MATERIALIZED (
        SELECT p_ids || '{}' AS ids
    ), ended AS (
        DELETE FROM pawl.job j
        WHERE j.id = ANY (p_ids) AND j.state + 0 = 3
          AND j.fence = p_fences[width_bucket(j.id, (SELECT ids FROM flat))]
          AND (NOT some_back OR p_outcomes[width_bucket(j.id, (SELECT ids FROM flat))] IN (0, 1, 2, 5))
        RETURNING j.id, j.lane, j.fence, j.owner, j.claimed_at, j.available_at, j.rank, j.attempt,
                  j.transient, j.lost, j.reason, j.aged, j.lock, j.admitted,
                  width_bucket(j.id, (SELECT ids FROM flat)) AS i
    ), put AS (
        INSERT INTO pawl.settled (id, lane, fence, claimed_at, available_at, finished_at, rank, attempt,
                                  transient, lost, state, reason)
        SELECT e.id, e.lane, e.fence, e.claimed_at, e.available_at, t, e.rank + e.aged, e.attempt,
               e.transient, e.lost + coalesce(p_flags[e.i] >> 2 & 1, 0),
               (ARRAY[4, 5, 6, 0, 0, 7])[p_outcomes[e.i] + 1], e.reason
        FROM ended e
    ), back AS (
        UPDATE pawl.job j SET (state, available_at, attempt, transient, lost, reason, owner, claimed_at,
                               rank, aged, admitted) =
            (SELECT CASE WHEN p_outcomes[x.i] <> 4 AND p_delays[x.i] > 0 THEN 2
                         WHEN j.lock IS NULL THEN 1 ELSE -1 END,
                    t + CASE WHEN p_outcomes[x.i] <> 4 THEN p_delays[x.i] ELSE 0 END,
                    j.attempt - (j.attempt > 0 AND (p_flags[x.i] & 1 = 1 OR
                                                    p_outcomes[x.i] IN (4, 6)))::int,
                    j.transient + (p_flags[x.i] >> 1 & 1), j.lost + (p_outcomes[x.i] = 6)::int,
                    CASE WHEN p_outcomes[x.i] <> 4 AND p_delays[x.i] > 0 THEN p_reasons[x.i] ELSE 0 END,
                    NULL::bigint, NULL::bigint, j.rank + j.aged, 0, NULL::boolean
             FROM (SELECT width_bucket(j.id, (SELECT ids FROM flat)) AS i OFFSET 0) x)
        WHERE some_back AND j.id = ANY (p_ids) AND j.state + 0 = 3
          AND j.fence = p_fences[width_bucket(j.id, (SELECT ids FROM flat))]
          AND p_outcomes[width_bucket(j.id, (SELECT ids FROM flat))] IN (3, 4, 6)
        RETURNING j.id, j.lane, j.fence, j.rank, j.state, j.lock, width_bucket(j.id, (SELECT ids FROM flat)) AS i
    ), was AS MATERIALIZED (
        SELECT b.*, o.owner, o.claimed_at, o.attempt, o.admitted
        FROM back b CROSS JOIN LATERAL
             (SELECT owner, claimed_at, attempt, admitted FROM pawl.job WHERE job.id = b.id OFFSET 0) o
    ), v AS NOT MATERIALIZED (
        SELECT id, lane, fence, owner, claimed_at, attempt, admitted, i FROM ended
        UNION ALL
        SELECT id, lane, fence, owner, claimed_at, attempt, admitted, i FROM was
    ), att AS (
        INSERT INTO pawl.attempt (job, fence, session, started_at, finished_at, log_bytes,
                                  fingerprint, attempt, exit_code, outcome, class, error)
        SELECT v.id, v.fence, v.owner, coalesce(nullif(p_started[v.i], 0), v.claimed_at), t,
               nullif(p_log_bytes[v.i], 0), CASE WHEN p_errors[v.i] IS NOT NULL THEN p_prints[v.i] END,
               v.attempt, nullif(p_exits[v.i], -1), p_outcomes[v.i], coalesce(p_classes[v.i], 0), p_errors[v.i]
        FROM v
    ), evt AS (
        INSERT INTO pawl.event (at, type, job, fence, session)
        SELECT t, (ARRAY[3, 4, 5, 7, 8, 6, 9])[p_outcomes[v.i] + 1], v.id, v.fence, v.owner
        FROM v ORDER BY p_ords[v.i]
    ), res AS (
        INSERT INTO pawl.result AS r (job, result)
        SELECT v.id, p_results[v.i] FROM v WHERE p_results IS NOT NULL AND p_results[v.i] IS NOT NULL
        ON CONFLICT (job) DO UPDATE SET result = excluded.result
    ), wak AS (
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
        SELECT b.lane, l.queue, l.kind, l.host, b.rank, b.id
        FROM (SELECT DISTINCT ON (lane) lane, rank, id FROM was WHERE state = 1
              ORDER BY lane, rank, id) b CROSS JOIN LATERAL
             (SELECT queue, kind, host FROM pawl.lane WHERE lane.id = b.lane OFFSET 0) l
    ), freed AS (
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
        SELECT 0, '', '', '', min(f.rank), 0, f.lock
        FROM (SELECT rank, lock FROM ended UNION ALL SELECT rank, lock FROM was) f
        WHERE p_policy < 0 AND f.lock IS NOT NULL GROUP BY f.lock
    ), cnt AS (
        INSERT INTO pawl.delta (class, queue, kind, at, n_running, n_queued, n_waiting, n_done, n_skipped,
                                n_failed, n_cancelled, e_done, e_skipped, e_failed, e_retried, e_lost,
                                backoff_us, retry_after_us)
        SELECT l.class, min(l.queue), min(l.kind), t, -sum(g.n), sum(g.n * (abs(g.back) = 1)::int),
               sum(g.n * (g.back = 2)::int),
               sum(g.n * (g.outcome = 0)::int), sum(g.n * (g.outcome = 1)::int),
               sum(g.n * (g.outcome = 2)::int), sum(g.n * (g.outcome = 5)::int),
               sum(g.n * (g.outcome = 0)::int), sum(g.n * (g.outcome = 1)::int),
               sum(g.n * (g.outcome = 2)::int), sum(g.n * (g.outcome = 3)::int),
               sum(g.n * (g.outcome = 6)::int), sum(g.backoff), sum(g.asked)
        FROM (SELECT lane, p_outcomes[i] AS outcome, 0 AS back, count(*) AS n, 0 AS backoff, 0 AS asked
              FROM ended GROUP BY 1, 2
              UNION ALL
              SELECT lane, p_outcomes[i], state, count(*),
                     sum(CASE WHEN p_outcomes[i] = 3 AND p_reasons[i] <> 3 THEN p_delays[i] ELSE 0 END),
                     sum(CASE WHEN p_outcomes[i] = 3 AND p_reasons[i] = 3 THEN p_delays[i] ELSE 0 END)
              FROM was GROUP BY 1, 2, 3) g CROSS JOIN LATERAL
             (SELECT class, queue, kind FROM pawl.lane WHERE lane.id = g.lane OFFSET 0) l
        GROUP BY l.class
    )
    SELECT array_agg(v.i), array_agg(v.claimed_at), array_agg(v.lane),
           coalesce(bool_or(v.admitted), false)
    INTO ended_at, claimed, lanes, elsewhere FROM v;
    -- Limits may have changed while we waited for a job's row: read after it (I7).
    IF ended_at IS NOT NULL AND (p_policy < 0 OR elsewhere OR p_peers IS NOT NULL OR NOT EXISTS
           (SELECT 1 FROM pawl.meta WHERE key = 'policy' AND value = p_policy::text)) THEN
        WITH gone AS (
            DELETE FROM pawl.permit p WHERE p.job = ANY (ARRAY(SELECT p_ids[i] FROM unnest(ended_at) i))
            RETURNING p.job, p.gate
        )
        SELECT array_agg(g.job), array_agg(g.gate) INTO jobs, gates FROM gone g;
        IF elsewhere OR p_peers IS NOT NULL THEN
            SELECT array_agg(x.job), array_agg(x.gate), array_agg(x.aside), array_agg(x.since)
            INTO jobs, gates, asides, sinces
            FROM pawl.ended_gates(jobs, gates, ARRAY(SELECT p_ids[e.i] FROM unnest(ended_at) e (i)), lanes,
                                  ARRAY(SELECT p_peers[e.i] FROM unnest(ended_at) e (i))) x;
        END IF;
        IF jobs IS NOT NULL AND pawl.wake_gates(gates, p_signals) THEN
            PERFORM pawl.tell_gates(jobs, gates, asides, sinces, array_agg(p_ids[e.i] ORDER BY p_ords[e.i]),
                                    array_agg(p_fences[e.i] ORDER BY p_ords[e.i]),
                                    array_agg(e.claimed ORDER BY p_ords[e.i]),
                                    array_agg(CASE WHEN p_outcomes[e.i] = 5 THEN 0 ELSE p_signals[e.i] END
                                              ORDER BY p_ords[e.i]),
                                    array_agg(coalesce(p_retry_after[e.i], -1) ORDER BY p_ords[e.i]),
                                    array_agg(p_errors[e.i] ORDER BY p_ords[e.i]))
            FROM unnest(ended_at, claimed) e (i, claimed);
        END IF;
    END IF;
    RETURN QUERY SELECT p_ords[i] FROM unnest(ended_at) i;
END $$;

-- As version 3 and earlier call it.
CREATE OR REPLACE FUNCTION pawl.settle(p_ids bigint[], p_fences bigint[], p_ords integer[],
                            p_outcomes integer[], p_classes integer[], p_flags integer[], p_reasons integer[],
                            p_exits integer[], p_delays bigint[], p_started bigint[],
                            p_log_bytes bigint[], p_prints bigint[], p_errors text[],
                            p_results text[], p_signals integer[], p_retry_after bigint[],
                            p_policy bigint)
RETURNS SETOF integer LANGUAGE sql VOLATILE AS $$
    SELECT pawl.settle(p_ids, p_fences, p_ords, p_outcomes, p_classes, p_flags, p_reasons, p_exits, p_delays,
                       p_started, p_log_bytes, p_prints, p_errors, p_results, p_signals, p_retry_after,
                       p_policy, NULL::text[]) $$;

-- These leases ended, of which some were admitted to other hosts or end with word of one; p_with and p_gates:
-- the permits they had. aside: the end tells of another host. since: from when on the job counted there, null:
-- its claim. What they were admitted to is forgotten.
CREATE OR REPLACE FUNCTION pawl.ended_gates(p_with bigint[], p_gates bigint[], p_jobs bigint[],
                                            p_lanes bigint[], p_peers text[])
RETURNS TABLE (job bigint, gate bigint, aside boolean, since bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH e AS MATERIALIZED (
        SELECT u.job, u.peer, l.queue, l.kind, l.gates
        FROM unnest(p_jobs, p_lanes, p_peers) u (job, lane, peer) CROSS JOIN LATERAL
             (SELECT queue, kind, gates FROM pawl.lane WHERE lane.id = u.lane OFFSET 0) l
    ), told AS MATERIALIZED (
        SELECT e.job, h.gate
        FROM e CROSS JOIN LATERAL pawl.host_gates(e.queue, e.kind, e.peer) h
        WHERE e.peer IS NOT NULL
    ), asked AS MATERIALIZED (
        SELECT a.job, h.gate, a.at
        FROM e JOIN pawl.admitted a ON a.job = e.job
             CROSS JOIN LATERAL pawl.host_gates(e.queue, e.kind, a.host) h
    )
    SELECT p.job, p.gate,
           CASE WHEN e.peer IS NULL THEN NOT p.gate = ANY (e.gates)
                ELSE NOT EXISTS (SELECT 1 FROM told t WHERE t.job = p.job AND t.gate = p.gate) END,
           CASE WHEN NOT p.gate = ANY (e.gates) THEN
               (SELECT min(a.at) FROM asked a WHERE a.job = p.job AND a.gate = p.gate) END
    FROM unnest(p_with, p_gates) p (job, gate) JOIN e ON e.job = p.job;
    DELETE FROM pawl.admitted a WHERE a.job = ANY (p_jobs);
END $$;

-- Permits of these gates went: whoever is parked on them hears of it. True if one of them may have to learn
-- how a lease ended: of a gate of which nothing is recorded a good end is not told.
CREATE OR REPLACE FUNCTION pawl.wake_gates(p_gates bigint[], p_signals integer[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    shut bigint[];
    tell boolean;
BEGIN
    SELECT array_agg(g.id) FILTER (WHERE g.shut),
           bool_or(g.breaker <> 0 OR g.failures > 0 OR g.held_n > 0 OR m.percent > 0
                   OR (m.adaptive AND g.interval_us > m.interval_us))
    INTO shut, tell
    FROM pawl.gate g LEFT JOIN pawl.limits m ON m.id = g.limit_id AND m.text IS NOT NULL
    WHERE g.id = ANY (p_gates);
    IF shut IS NOT NULL THEN
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, gate)
        SELECT 0, '', '', '', 0, 0, x FROM unnest(shut) x;
    END IF;
    RETURN coalesce(tell, false) OR p_signals && ARRAY[3, 4, 5];
END $$;

-- These leases have ended, in this order; p_with and p_gates: the permits they had. The gates learn how
-- (gate_result). Of each pair: aside: the end tells of another gate's host, this one's was well
-- (gate_signal_aside); since: when the job began to count there; null: no, and the claim.
CREATE OR REPLACE FUNCTION pawl.tell_gates(p_with bigint[], p_gates bigint[], p_asides boolean[],
                                           p_sinces bigint[], p_jobs bigint[], p_fences bigint[], p_claimed bigint[], p_signals integer[],
                                           p_retry_after bigint[], p_errors text[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t bigint;
    r record;
    s pawl.gate;
    l pawl.limits;
BEGIN
    PERFORM 1 FROM (SELECT id FROM pawl.gate WHERE id = ANY (p_gates) ORDER BY id FOR UPDATE) x;
    t := pawl.now_us(); -- not before a claim that the gate let through
    FOR r IN
        SELECT e.job, e.fence, coalesce(p.since, e.claimed) AS claimed, e.retry, e.error, p.gate,
               CASE WHEN p.aside AND e.signal NOT IN (0, 6) THEN 1 ELSE e.signal END AS signal,
               CASE WHEN bool_or(m.hosted) OVER (PARTITION BY e.o, coalesce(p.aside, false))
                    THEN m.hosted ELSE true END AS hold
        FROM unnest(p_jobs, p_fences, p_claimed, p_signals, p_retry_after, p_errors) WITH ORDINALITY
             e (job, fence, claimed, signal, retry, error, o)
             JOIN unnest(p_with, p_gates, p_asides, p_sinces) p (job, gate, aside, since) ON p.job = e.job
             CROSS JOIN LATERAL
             (SELECT m.each = 1 OR coalesce(cardinality(m.hosts), 0) > 0 AS hosted
              FROM pawl.gate x JOIN pawl.limits m ON m.id = x.limit_id AND m.text IS NOT NULL
              WHERE x.id = p.gate OFFSET 0) m
        ORDER BY e.o, p.gate
    LOOP
        SELECT x.* INTO s FROM pawl.gate x WHERE x.id = r.gate;
        SELECT m.* INTO l FROM pawl.limits m WHERE m.id = s.limit_id;
        PERFORM pawl.gate_learns(s, l, r.signal, r.hold, r.retry, r.claimed, r.job, r.fence, r.error, t);
    END LOOP;
END $$;

-- One end of a lease under one gate, whose row is locked.
CREATE OR REPLACE FUNCTION pawl.gate_learns(s pawl.gate, l pawl.limits, p_signal integer, p_hold boolean,
                                            p_retry_after bigint, p_claimed bigint, p_job bigint,
                                            p_fence bigint, p_error text, p_now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r record;
BEGIN
    SELECT x.s, x.change, x.why INTO r
    FROM pawl.gate_result(s, l, p_signal, p_hold, p_retry_after, p_claimed, p_job, p_fence, p_now) x;
    IF r.change = 0 THEN
        RETURN;
    END IF;
    s := r.s;
    IF r.change = 2 THEN
        s.why := r.why || CASE WHEN r.why LIKE '%: '
                               THEN coalesce(nullif(pawl.cut(p_error, 200), ''), 'no error text') ELSE '' END;
    END IF;
    UPDATE pawl.gate g SET interval_us = s.interval_us, cut_at = s.cut_at, raised_at = s.raised_at,
        held_until = s.held_until, held_at = s.held_at, held_n = s.held_n, held_asked = s.held_asked,
        breaker = s.breaker, since = s.since, until = s.until, failures = s.failures, opens = s.opens,
        epoch = s.epoch, probe_job = s.probe_job, probe_fence = s.probe_fence, window_at = s.window_at,
        window_calls = s.window_calls, window_failures = s.window_failures, why = s.why,
        -- It may open at another time than was thought.
        wake_at = CASE WHEN s.shut THEN p_now ELSE g.wake_at END
    WHERE g.id = s.id;
    IF r.change IN (2, 3) THEN
        INSERT INTO pawl.event (at, type, job, fence, session, detail)
        VALUES (p_now, CASE r.change WHEN 2 THEN 22 ELSE 24 END, p_job, p_fence,
                (SELECT a.session FROM pawl.attempt a WHERE a.job = p_job AND a.fence = p_fence),
                pawl.gate_detail(l.name, s.value, CASE s.breaker WHEN 1 THEN s.until ELSE 0 END,
                                 CASE r.change WHEN 2 THEN s.why END));
    END IF;
END $$;

-- ---- other hosts ----

-- Permits of the gates of another host for a running job, all or none (I3, I7); outcome by number as in
-- struct admission. wait, gate: of the shut one that lets it wait longest. As a claim it waits for nobody: what
-- others have is shut for some milliseconds.
CREATE OR REPLACE FUNCTION pawl.admit(p_job bigint, p_fence bigint, p_host text, OUT outcome integer,
                                      OUT wait bigint, OUT gate text)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_variable
DECLARE
    j record;
    l record;
    t bigint;
    number bigint;
    wanted bigint[]; names text[]; -- gates of which it has no permit yet
    locked bigint[];
BEGIN
    outcome := 2; wait := 5000;
    SELECT x.lane, x.owner INTO j FROM pawl.job x
    WHERE x.id = p_job AND x.state + 0 = 3 AND x.fence = p_fence FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        PERFORM 1 FROM pawl.job x WHERE x.id = p_job AND x.state + 0 = 3 AND x.fence = p_fence;
        outcome := CASE WHEN FOUND THEN 2 ELSE 1 END;
        gate := 'another transaction has the job';
        RETURN;
    END IF;
    IF NOT pg_try_advisory_xact_lock_shared(pawl.name_id('pawl.policy', '')) THEN
        gate := 'the limits are being changed';
        RETURN;
    END IF;
    SELECT x.queue, x.kind, x.host INTO l FROM pawl.lane x WHERE x.id = j.lane;
    IF l.host = p_host THEN
        outcome := 0;
        RETURN;
    END IF;
    SELECT array_agg(h.gate ORDER BY h.gate), array_agg(h.name || '=' || h.value ORDER BY h.gate)
    INTO wanted, names
    FROM pawl.host_gates(l.queue, l.kind, p_host) h
    WHERE NOT EXISTS (SELECT 1 FROM pawl.permit p WHERE p.job = p_job AND p.gate = h.gate);
    IF EXISTS (SELECT 1 FROM unnest(wanted) w (id)
               WHERE NOT EXISTS (SELECT 1 FROM pawl.gate g WHERE g.id = w.id)) THEN
        IF NOT pg_try_advisory_xact_lock(pawl.name_id('pawl.lane', '')) THEN
            gate := names[1];
            RETURN;
        END IF;
        SELECT m.value::bigint INTO number FROM pawl.meta m WHERE m.key = 'policy';
        INSERT INTO pawl.gate (id, limit_id, value, policy)
        SELECT h.gate, h.limit_id, h.value, number FROM pawl.host_gates(l.queue, l.kind, p_host) h
        ON CONFLICT DO NOTHING;
    END IF;
    SELECT array_agg(x.id) INTO locked
    FROM (SELECT g.id FROM pawl.gate g WHERE g.id = ANY (wanted) ORDER BY g.id FOR UPDATE SKIP LOCKED) x;
    IF coalesce(cardinality(locked), 0) < coalesce(cardinality(wanted), 0) THEN
        SELECT min(n.name) INTO gate FROM unnest(wanted, names) n (id, name)
        WHERE pawl.place(n.id, locked) IS NULL;
        RETURN;
    END IF;
    t := pawl.now_us();
    SELECT s.wait, names[pawl.place(s.id, wanted)] INTO wait, gate
    FROM (SELECT r.id, CASE WHEN r.until > 0 THEN least(r.until - t, 3600000000) ELSE 250000 END AS wait
          FROM pawl.rooms(locked, 1, t) r WHERE r.room = 0) s
    ORDER BY s.wait DESC, names[pawl.place(s.id, wanted)] LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;
    outcome := 0;
    INSERT INTO pawl.permit (job, gate) SELECT p_job, w FROM unnest(wanted) w;
    IF wanted IS NOT NULL THEN
        PERFORM pawl.gates_taken(wanted, array_fill(1, ARRAY[cardinality(wanted)]),
                                 array_fill(p_job, ARRAY[cardinality(wanted)]), j.owner, t);
    END IF;
    INSERT INTO pawl.admitted (job, host, at) VALUES (p_job, p_host, t) ON CONFLICT DO NOTHING;
    UPDATE pawl.job SET admitted = true WHERE id = p_job AND admitted IS NULL;
END $$;

-- gate_pace() of gate.c for the gates of one host, which are locked without waiting for them in a circle with
-- others: who has them is given some time, then it is an error. Returns how many.
CREATE OR REPLACE FUNCTION pawl.pace(p_job bigint, p_fence bigint, p_host text, p_apart bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    l record;
    t bigint;
    number bigint;
    wanted bigint[];
    locked bigint[];
BEGIN
    SELECT x.queue, x.kind INTO l FROM pawl.job j JOIN pawl.lane x ON x.id = j.lane
    WHERE j.id = p_job AND j.state + 0 = 3 AND j.fence = p_fence;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    FOR round IN 1 .. 500 LOOP
        IF pg_try_advisory_xact_lock_shared(pawl.name_id('pawl.policy', '')) THEN
            SELECT array_agg(h.gate) INTO wanted FROM pawl.host_gates(l.queue, l.kind, p_host) h WHERE h.each = 1;
            IF wanted IS NULL THEN
                RETURN 0;
            END IF;
            IF EXISTS (SELECT 1 FROM unnest(wanted) w (id)
                       WHERE NOT EXISTS (SELECT 1 FROM pawl.gate g WHERE g.id = w.id))
               AND pg_try_advisory_xact_lock(pawl.name_id('pawl.lane', '')) THEN
                SELECT m.value::bigint INTO number FROM pawl.meta m WHERE m.key = 'policy';
                INSERT INTO pawl.gate (id, limit_id, value, policy)
                SELECT h.gate, h.limit_id, h.value, number
                FROM pawl.host_gates(l.queue, l.kind, p_host) h WHERE h.each = 1
                ON CONFLICT DO NOTHING;
            END IF;
            SELECT array_agg(x.id) INTO locked
            FROM (SELECT g.id FROM pawl.gate g WHERE g.id = ANY (wanted) ORDER BY g.id
                  FOR UPDATE SKIP LOCKED) x;
            EXIT WHEN coalesce(cardinality(locked), 0) = cardinality(wanted);
        END IF;
        PERFORM pg_sleep(0.002);
    END LOOP;
    IF coalesce(cardinality(locked), 0) < coalesce(cardinality(wanted), 1) THEN
        RAISE EXCEPTION 'gates of % are locked', p_host USING ERRCODE = 'lock_not_available';
    END IF;
    t := pawl.now_us();
    UPDATE pawl.gate g SET pace_us = p_apart WHERE g.id = ANY (locked);
    UPDATE pawl.gate g SET
        tat = least(CASE WHEN p_apart > 0 THEN greatest(g.tat, t + p_apart) ELSE g.tat END,
                    t + pawl.burst_now(g, m) * pawl.interval_now(g, m)),
        wake_at = CASE WHEN g.shut THEN t ELSE g.wake_at END
    FROM pawl.limits m WHERE g.id = ANY (locked) AND m.id = g.limit_id;
    RETURN cardinality(locked);
END $$;

-- ---- what settles leave behind ----

-- What settles left behind besides their jobs: the artifacts (I10), then the records of their fetches; of
-- leases that pawl.settle has just ended, so each has its attempt (I2). An artifact's row is found again by
-- its name: p_kept, null where no body was kept.
CREATE OR REPLACE FUNCTION pawl.keep(p_jobs bigint[], p_fences bigint[], p_names text[], p_types text[],
                          p_hashes bytea[], p_sizes bigint[], p_stored bigint[], p_codecs integer[],
                          p_places text[],
                          f_jobs bigint[], f_fences bigint[], f_kept text[], f_statuses integer[],
                          f_wire bigint[], f_body bigint[], f_dns bigint[], f_connect bigint[],
                          f_tls bigint[], f_first bigint[], f_total bigint[], f_wire_hashes bytea[],
                          f_body_hashes bytea[], f_methods text[], f_variants text[],
                          f_addresses text[], f_versions text[], f_types text[], f_encodings text[],
                          f_modified text[], f_etags text[], f_urls text[], f_finals text[],
                          f_headers text[], f_redirects text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    IF p_jobs IS NOT NULL THEN
        INSERT INTO pawl.artifact (job, fence, size, stored, created_at, codec, sha256, queue, name, place,
                                   type)
        SELECT u.job, u.fence, u.size, u.stored, t.finished_at, u.codec, u.hash, b.queue, u.name, u.place,
               u.type
        FROM unnest(p_jobs, p_fences, p_names, p_types, p_hashes, p_sizes, p_stored, p_codecs, p_places)
             WITH ORDINALITY u (job, fence, name, type, hash, size, stored, codec, place, o)
             CROSS JOIN LATERAL (SELECT queue FROM pawl.body WHERE body.id = u.job OFFSET 0) b
             CROSS JOIN LATERAL (SELECT finished_at FROM pawl.attempt a
                                 WHERE a.job = u.job AND a.fence = u.fence OFFSET 0) t
        ORDER BY u.o
        ON CONFLICT DO NOTHING;
    END IF;
    IF f_jobs IS NOT NULL THEN
        INSERT INTO pawl.fetch (job, fence, at, queue, artifact, kept, status, wire_bytes, body_bytes,
                                dns_us, connect_us, tls_us, first_byte_us, total_us, wire_sha256,
                                body_sha256, method, variant, address, http_version, content_type,
                                encoding, last_modified, etag, url, final_url, headers, redirects)
        SELECT u.job, u.fence, t.finished_at, b.queue,
               (SELECT a.id FROM pawl.artifact a
                WHERE a.job = u.job AND a.name = u.kept AND a.fence = u.fence),
               u.kept IS NOT NULL, u.status, u.wire, u.body, u.dns, u.connect, u.tls, u.first, u.total,
               u.wire_hash, u.body_hash, u.method, u.variant, u.address, u.version, u.type, u.encoding,
               u.modified, u.etag, u.url, u.final, u.headers, u.redirects
        FROM unnest(f_jobs, f_fences, f_kept, f_statuses, f_wire, f_body, f_dns, f_connect, f_tls,
                    f_first, f_total, f_wire_hashes, f_body_hashes, f_methods, f_variants, f_addresses,
                    f_versions, f_types, f_encodings, f_modified, f_etags, f_urls, f_finals, f_headers,
                    f_redirects)
             u (job, fence, kept, status, wire, body, dns, connect, tls, first, total, wire_hash,
                body_hash, method, variant, address, version, type, encoding, modified, etag, url,
                final, headers, redirects)
             CROSS JOIN LATERAL (SELECT queue FROM pawl.body WHERE body.id = u.job OFFSET 0) b
             CROSS JOIN LATERAL (SELECT finished_at FROM pawl.attempt a
                                 WHERE a.job = u.job AND a.fence = u.fence OFFSET 0) t
        ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- Adds jobs under ids taken beforehand. Outcomes by number as in store.h. Keys are taken in the order
-- of their digests, so that two batches cannot wait for each other in a circle.
CREATE OR REPLACE FUNCTION pawl.add_jobs(p_ids bigint[], p_queues text[], p_kinds text[], p_hosts text[],
                              p_keys text[], p_payloads text[], p_priorities integer[],
                              p_delays bigint[], p_ats bigint[], p_attempts integer[],
                              p_timeouts bigint[], p_parents bigint[], p_dup integer,
                              p_locks text[])
RETURNS TABLE (ord bigint, id bigint, outcome integer, state integer)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    t bigint := pawl.now_us();
    n_keys integer;
    n_mine integer := 0;
    r record;
    k record;
    old record;
    new_state integer;
    due bigint;
    holders bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_ids)]);
    gone boolean[] := array_fill(false, ARRAY[cardinality(p_ids)]);
    ev_ord integer[]; ev_type integer[]; ev_job bigint[]; ev_fence bigint[];
BEGIN
    SELECT count(u.key) INTO n_keys FROM unnest(p_keys) u (key);
    IF n_keys > 0 THEN
        INSERT INTO pawl.job_key (digest, id)
        SELECT d.digest, d.id
        FROM (SELECT pawl.key_digest(u.queue, u.key) AS digest, u.id, u.o
              FROM unnest(p_ids, p_queues, p_keys) WITH ORDINALITY u (id, queue, key, o)
              WHERE u.key IS NOT NULL) d
        ORDER BY d.digest, d.o ON CONFLICT (digest) DO NOTHING;
        GET DIAGNOSTICS n_mine = ROW_COUNT;
    END IF;
    IF n_mine < n_keys THEN
        FOR r IN SELECT pawl.key_digest(u.queue, u.key) AS digest, u.id, u.o
                 FROM unnest(p_ids, p_queues, p_keys) WITH ORDINALITY u (id, queue, key, o)
                 WHERE u.key IS NOT NULL ORDER BY 1, 3
        LOOP
            SELECT x.id, x.expires INTO k FROM pawl.job_key x WHERE x.digest = r.digest;
            CONTINUE WHEN k.id = r.id;
            IF k.expires IS NOT NULL AND (p_dup = 1 OR k.expires <= t) THEN
                UPDATE pawl.job_key SET id = r.id, expires = NULL WHERE digest = r.digest;
                CONTINUE;
            END IF;
            holders[r.o] := k.id;
            gone[r.o] := k.expires IS NOT NULL;
        END LOOP;
    END IF;
    WITH u AS MATERIALIZED (
        SELECT x.*, CASE WHEN x.at > t THEN x.at WHEN x.delay > 0 THEN t + x.delay ELSE t END AS due,
               CASE WHEN x.at > t OR (x.at IS NULL AND x.delay > 0) THEN 2 ELSE 1 END AS st
        FROM unnest(p_ids, p_queues, p_kinds, p_hosts, p_keys, p_payloads, p_priorities, p_delays,
                    p_ats, p_attempts, p_timeouts, p_parents, holders, p_locks) WITH ORDINALITY
             x (id, queue, kind, host, key, payload, priority, delay, at, attempts, timeout, parent,
                holder, lock, o)
        WHERE x.holder = 0
    ), l AS MATERIALIZED (
        SELECT u.*, pawl.name_id(u.queue, u.kind, u.host) AS lane, pawl.lock_id(u.lock) AS lock_id FROM u
    ), b AS (
        INSERT INTO pawl.body (id, queue, kind, host, key, payload, created_at, max_attempts, timeout_us,
                               parent, lock)
        SELECT l.id, l.queue, l.kind, l.host, l.key, l.payload, t, l.attempts, l.timeout, l.parent, l.lock
        FROM l
    ), j AS (
        INSERT INTO pawl.job (id, lane, rank, state, available_at, reason, lock)
        SELECT l.id, l.lane, -l.priority, CASE WHEN l.st = 1 AND l.lock IS NOT NULL THEN -1 ELSE l.st END,
               l.due, (l.st - 1), l.lock_id
        FROM l
    ), k AS (
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
        SELECT 0, '', '', '', min(-l.priority), 0, l.lock_id
        FROM l WHERE l.st = 1 AND l.lock IS NOT NULL GROUP BY l.lock_id
    ), w AS (
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
        SELECT DISTINCT ON (l.lane) l.lane, l.queue, l.kind, l.host, -l.priority, l.id
        FROM l WHERE l.st = 1 AND l.lock IS NULL ORDER BY l.lane, -l.priority, l.id
    )
    INSERT INTO pawl.delta (class, queue, kind, at, n_queued, n_waiting, first_at)
    SELECT pawl.name_id(l.queue, l.kind), l.queue, l.kind, t, sum((l.st = 1)::int),
           sum((l.st = 2)::int), t
    FROM l GROUP BY l.queue, l.kind;
    SELECT array_agg(o), array_agg(1), array_agg(x), array_agg(NULL::bigint)
    INTO ev_ord, ev_type, ev_job, ev_fence
    FROM unnest(p_ids, holders) WITH ORDINALITY u (x, h, o) WHERE h = 0;
    FOR r IN SELECT u.* FROM unnest(p_queues, p_kinds, p_hosts, p_payloads, p_priorities, p_delays,
                                    p_ats, p_attempts, p_timeouts, holders, gone, p_ids, p_locks)
                                    WITH ORDINALITY
             u (queue, kind, host, payload, priority, delay, at, attempts, timeout, holder, gone, id, lock, o)
             ORDER BY u.o
    LOOP
        ord := r.o;
        IF r.holder = 0 THEN
            id := r.id; outcome := 0; state := 1;
            RETURN NEXT;
            CONTINUE;
        END IF;
        id := r.holder;
        outcome := CASE WHEN p_dup = 2 THEN 5 ELSE 1 END;
        IF r.gone THEN -- done and pruned, its key still taken
            state := 4;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT j.state, j.lane, j.fence, j.available_at INTO old FROM pawl.job j WHERE j.id = r.holder;
        IF NOT FOUND THEN
            SELECT j.state, j.lane, j.fence, j.available_at INTO old
            FROM pawl.settled j WHERE j.id = r.holder;
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'key without job %', r.holder USING ERRCODE = 'data_corrupted';
        END IF;
        IF p_dup = 1 THEN
            SELECT q.out_outcome, q.out_state, q.out_fence INTO outcome, state, old.fence
            FROM pawl.requeue(r.holder, r.queue, r.kind, r.host, r.payload, r.priority, r.delay, r.at,
                              r.attempts, r.timeout, r.lock) q;
            IF outcome <> 4 THEN
                ev_ord := ev_ord || r.o::int;
                ev_type := ev_type || CASE outcome WHEN 2 THEN 10 ELSE 11 END;
                ev_job := ev_job || r.holder;
                ev_fence := ev_fence || nullif(old.fence, 0);
            END IF;
        ELSE
            state := abs(old.state);
        END IF;
        RETURN NEXT;
    END LOOP;
    INSERT INTO pawl.event (at, type, job, fence)
    SELECT t, e.type, e.job, e.fence
    FROM unnest(ev_ord, ev_type, ev_job, ev_fence) e (o, type, job, fence) ORDER BY e.o;
END $$;

-- New payload, place and budgets for an old id; the fence stays, so a late writer of an earlier lease
-- stays locked out (I2). Outcomes: 2 it had ended, 3 it had not run yet, 4 it runs: unchanged.
CREATE OR REPLACE FUNCTION pawl.requeue(p_id bigint, p_queue text, p_kind text, p_host text, p_payload text,
                             p_priority integer, p_delay bigint, p_at bigint, p_attempts integer,
                             p_timeout bigint, p_lock text, OUT out_outcome integer, OUT out_state integer,
                             OUT out_fence bigint)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t bigint := pawl.now_us();
    b record;
    wait boolean := p_at > t OR (p_at IS NULL AND p_delay > 0);
    due bigint := CASE WHEN p_at > t THEN p_at WHEN p_delay > 0 THEN t + p_delay ELSE t END;
    lane_to bigint := pawl.name_id(p_queue, p_kind, p_host);
    old_lock bigint;
BEGIN
    wait := coalesce(wait, false);
    SELECT abs(j.state), j.fence, j.lock INTO out_state, out_fence, old_lock
    FROM pawl.job j WHERE j.id = p_id FOR UPDATE;
    IF FOUND THEN
        IF out_state IN (0, 3) THEN
            out_outcome := 4;
            RETURN;
        END IF;
        out_outcome := 3;
    ELSE
        DELETE FROM pawl.settled j WHERE j.id = p_id RETURNING j.state, j.fence INTO out_state, out_fence;
        IF NOT FOUND THEN -- pruned, or moved, while we waited for its row
            RAISE EXCEPTION 'job % changed meanwhile', p_id USING ERRCODE = 'serialization_failure';
        END IF;
        out_outcome := 2;
    END IF;
    SELECT x.queue, x.kind INTO b FROM pawl.body x WHERE x.id = p_id;
    UPDATE pawl.body SET kind = p_kind, host = p_host, payload = p_payload, max_attempts = p_attempts,
        timeout_us = p_timeout, lock = p_lock
    WHERE id = p_id;
    INSERT INTO pawl.job AS j (id, lane, fence, available_at, rank, state, reason, lock)
    VALUES (p_id, lane_to, out_fence, due, -p_priority,
            CASE WHEN wait THEN 2 WHEN p_lock IS NULL THEN 1 ELSE -1 END, wait::int, pawl.lock_id(p_lock))
    ON CONFLICT (id) DO UPDATE SET lane = excluded.lane, available_at = excluded.available_at,
        rank = excluded.rank, state = excluded.state, reason = excluded.reason, attempt = 0,
        transient = 0, lost = 0, owner = NULL, claimed_at = NULL, lock = excluded.lock, aged = 0;
    DELETE FROM pawl.result WHERE job = p_id;
    DELETE FROM pawl.poison WHERE job = p_id;
    PERFORM pawl.count_move(b.queue, b.kind, out_state, -1);
    PERFORM pawl.count_move(p_queue, p_kind, -1, CASE WHEN wait THEN 2 ELSE 1 END);
    IF NOT wait AND p_lock IS NULL THEN
        INSERT INTO pawl.wake (lane, queue, kind, host, rank, job)
        VALUES (lane_to, p_queue, p_kind, p_host, -p_priority, p_id);
    END IF;
    INSERT INTO pawl.wake (lane, queue, kind, host, rank, job, lock)
    SELECT DISTINCT 0, '', '', '', -p_priority, 0, x FROM unnest(ARRAY[old_lock, pawl.lock_id(p_lock)]) x
    WHERE x IS NOT NULL;
END $$;

-- A wish to be heard by idle workers, delivered at the commit; nothing where that is switched off.
CREATE OR REPLACE FUNCTION pawl.notify() RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_notify(value, '') FROM pawl.meta WHERE key = 'channel' AND value <> '' $$;

-- For applications, in their own transaction: rolled back means it never existed (docs/sql.md).
CREATE OR REPLACE FUNCTION pawl.add(kind text, payload text DEFAULT 'null', queue text DEFAULT 'default',
                         key text DEFAULT NULL, host text DEFAULT NULL, priority integer DEFAULT 0,
                         delay interval DEFAULT NULL, at timestamptz DEFAULT NULL,
                         max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL,
                         on_duplicate text DEFAULT 'skip', lock text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name record;
    r record;
BEGIN
    FOR name IN SELECT * FROM (VALUES ('queue', $3, 255), ('kind', $1, 255), ('host', $5, 255),
                                      ('key', $4, 1024), ('lock', $12, 255))
                n (field, value, max)
    LOOP
        IF name.value IS NULL AND name.field IN ('queue', 'kind') THEN
            RAISE EXCEPTION 'pawl.add: % is null', name.field USING ERRCODE = 'null_value_not_allowed';
        ELSIF name.value = '' OR octet_length(name.value) > name.max THEN
            RAISE EXCEPTION 'pawl.add: % must have 1 to % bytes', name.field, name.max
                USING ERRCODE = 'invalid_parameter_value';
        ELSIF name.value ~ '[\x01-\x1f\x7f]' THEN
            RAISE EXCEPTION 'pawl.add: % has a control character', name.field
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
    IF $2 IS NULL OR octet_length($2) > 16777216 THEN
        RAISE EXCEPTION 'pawl.add: payload must be JSON of at most 16777216 bytes'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM $2::json;
    IF $6 IS NULL OR $6 NOT BETWEEN -1000000 AND 1000000 THEN
        RAISE EXCEPTION 'pawl.add: priority must be from -1000000 to 1000000'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF $9 NOT BETWEEN 1 AND 1000000 THEN
        RAISE EXCEPTION 'pawl.add: max_attempts must be from 1 to 1000000'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF $7 < interval '0' OR $10 <= interval '0' THEN
        RAISE EXCEPTION 'pawl.add: delay and timeout must be positive'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF $11 IS NULL OR $11 NOT IN ('skip', 'requeue', 'fail') THEN
        RAISE EXCEPTION 'pawl.add: on_duplicate must be skip, requeue or fail'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT a.id, a.outcome INTO r
    FROM pawl.add_jobs(ARRAY[nextval('pawl.job_id')], ARRAY[$3], ARRAY[$1], ARRAY[coalesce($5, '')],
                       ARRAY[$4], ARRAY[$2], ARRAY[$6],
                       ARRAY[(extract(epoch FROM $7) * 1000000)::bigint],
                       ARRAY[(extract(epoch FROM $8) * 1000000)::bigint], ARRAY[$9],
                       ARRAY[(extract(epoch FROM $10) * 1000000)::bigint], ARRAY[NULL::bigint],
                       array_position(ARRAY['skip', 'requeue', 'fail'], $11) - 1, ARRAY[$12]) a;
    IF r.outcome = 5 THEN
        RAISE EXCEPTION 'pawl.add: key ''%'' exists as job %', $4, r.id USING ERRCODE = 'unique_violation';
    ELSIF r.outcome = 4 THEN
        RAISE EXCEPTION 'pawl.add: job % is running', r.id USING ERRCODE = 'object_in_use';
    END IF;
    PERFORM pawl.notify();
    RETURN r.id;
END $$;

-- It acts with the owner's rights: only for those it is granted to.
REVOKE EXECUTE ON FUNCTION pawl.add FROM PUBLIC;

-- Extends a session, if and only if it is unexpired; command null: it was not.
CREATE OR REPLACE FUNCTION pawl.renew(p_session bigint, p_lease bigint, p_running integer, p_jobs bigint[],
                           p_fences bigint[], p_progress text[], p_names text[], p_values bigint[],
                           p_preflight text, OUT command integer, OUT cancels bigint[],
                           OUT revoked_jobs bigint[],
                           OUT revoked_fences bigint[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t bigint := pawl.now_us();
BEGIN
    UPDATE pawl.session s SET lease_until = t + p_lease, renewed_at = t, running = p_running,
        preflight = coalesce(p_preflight, s.preflight)
    WHERE s.id = p_session AND s.lease_until > t AND s.ended_at IS NULL RETURNING s.command INTO command;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF cardinality(p_jobs) > 0 THEN
        INSERT INTO pawl.progress AS p (job, fence, progress)
        SELECT DISTINCT ON (j.id) j.id, j.fence, u.progress
        FROM unnest(p_jobs, p_fences, p_progress) WITH ORDINALITY u (job, fence, progress, o)
             JOIN pawl.job j ON j.id = u.job AND j.fence = u.fence AND j.state = 3
        ORDER BY j.id, u.o DESC
        ON CONFLICT (job) DO UPDATE SET fence = excluded.fence, progress = excluded.progress;
    END IF;
    IF cardinality(p_names) > 0 THEN
        INSERT INTO pawl.metric AS m (session, name, value)
        SELECT p_session, u.name, u.value FROM unnest(p_names, p_values) u (name, value)
        ON CONFLICT (session, name) DO UPDATE SET value = excluded.value;
    END IF;
    SELECT array_agg(k.job) INTO cancels FROM pawl.cancel_ask k JOIN pawl.job j ON j.id = k.job
    WHERE k.session = p_session AND j.fence = k.fence AND j.state = 3;
    WITH gone AS (DELETE FROM pawl.revoked r WHERE r.session = p_session RETURNING r.job, r.fence)
    SELECT array_agg(g.job), array_agg(g.fence) INTO revoked_jobs, revoked_fences FROM gone g;
END $$;

-- Views.

-- One job with everything `list` and `show` print; internal.
CREATE OR REPLACE VIEW pawl.job_row AS
SELECT j.id, -j.rank AS priority, j.state::int AS state, j.attempt, j.transient, j.lost, j.fence,
       s.name AS worker, j.claimed_at, CASE j.state WHEN 3 THEN s.lease_until END AS lease_until,
       j.available_at, j.finished_at, j.reason::int AS reason,
       j.state = 3 AND EXISTS (SELECT 1 FROM pawl.cancel_ask k WHERE k.job = j.id AND k.fence = j.fence)
           AS cancel,
       (SELECT p.progress FROM pawl.progress p WHERE p.job = j.id AND p.fence = j.fence AND j.state = 3)
           AS progress,
       b.lock, b.key, b.created_at, b.max_attempts, b.timeout_us, b.parent, b.queue, b.kind,
       nullif(b.host, '') AS host, a.class::int AS class, a.error, a.exit_code, b.payload, r.result,
       a.fingerprint
FROM (SELECT id, rank + aged AS rank, CASE state WHEN -1 THEN 1 ELSE state END AS state, attempt, transient,
             lost, fence, owner, claimed_at, available_at, NULL::bigint AS finished_at, reason FROM pawl.job
      UNION ALL
      SELECT id, rank, state, attempt, transient, lost, fence, NULL, claimed_at, available_at,
             finished_at, reason FROM pawl.settled) j
     JOIN pawl.body b ON b.id = j.id LEFT JOIN pawl.session s ON s.id = j.owner
     LEFT JOIN pawl.attempt a ON a.job = j.id AND a.fence = j.fence
     LEFT JOIN pawl.result r ON r.job = j.id;

-- For people and their tools: same columns on every store, documented in docs/views.md.
CREATE OR REPLACE VIEW pawl.v_jobs AS
SELECT id, queue, kind, host, key, priority,
       (ARRAY['blocked', 'queued', 'waiting', 'running', 'done', 'skipped', 'failed', 'cancelled'])[state + 1]
           AS state,
       attempt, transient AS transient_attempts, lost, fence, worker, created_at, claimed_at,
       available_at, finished_at, payload, result, lock
FROM pawl.job_row;

CREATE OR REPLACE VIEW pawl.v_attempts AS
SELECT a.job, a.attempt, a.fence, s.name AS worker, a.started_at, a.finished_at,
       (ARRAY['done', 'skipped', 'failed', 'retry', 'released', 'cancelled', 'lost'])[a.outcome + 1]
           AS outcome,
       (ARRAY['transient', 'error', 'fatal', 'lost'])[a.class] AS class,
       a.exit_code, a.error, a.log_bytes
FROM pawl.attempt a LEFT JOIN pawl.session s ON s.id = a.session;

CREATE OR REPLACE VIEW pawl.v_events AS
SELECT e.id, e.at, e.type, e.job, e.fence, s.name AS worker, e.detail
FROM pawl.event e LEFT JOIN pawl.session s ON s.id = e.session;

CREATE OR REPLACE VIEW pawl.v_limits AS
SELECT name, text, CASE WHEN by_operator THEN 'operator' ELSE 'config' END AS source, config, changed_at
FROM pawl.limits WHERE text IS NOT NULL;

CREATE OR REPLACE VIEW pawl.v_gates AS
SELECT l.name AS limit_name, nullif(g.value, '') AS value,
       (SELECT count(*) FROM pawl.permit p WHERE p.gate = g.id) AS used,
       (SELECT count(*) FROM pawl.lane x WHERE x.parked = g.id) AS parked,
       (ARRAY['closed', 'open', 'half-open'])[g.breaker + 1] AS breaker,
       nullif(g.since, 0) AS breaker_since,
       nullif(nullif(g.until, 0), 9223372036854775807) AS breaker_until, g.failures, g.opens,
       nullif(g.held_until, 0) AS held_until, nullif(g.tat, 0) AS next_at,
       nullif(g.interval_us, 0) AS interval_us, g.why
FROM pawl.gate g JOIN pawl.limits l ON l.id = g.limit_id;

CREATE OR REPLACE VIEW pawl.v_locks AS
SELECT (SELECT b.lock FROM pawl.body b WHERE b.id = coalesce(h.id, n.id)) AS key, h.id AS job, h.fence,
       s.name AS worker, h.claimed_at AS since, s.lease_until AS until, l.waiting, n.id AS next
FROM (SELECT lock, count(*) FILTER (WHERE state <> 3) AS waiting FROM pawl.job
      WHERE lock IS NOT NULL AND state IN (-1, 1, 3) GROUP BY lock) l
     LEFT JOIN pawl.job h ON h.lock = l.lock AND h.state = 3
     LEFT JOIN pawl.session s ON s.id = h.owner
     LEFT JOIN LATERAL (SELECT j.id FROM pawl.job j WHERE j.lock = l.lock AND j.state IN (-1, 1)
                        ORDER BY j.rank, j.id LIMIT 1) n ON true;

CREATE OR REPLACE VIEW pawl.v_artifacts AS
SELECT a.id, a.job, a.fence, a.queue, a.name, a.type, encode(a.sha256, 'hex') AS sha256, a.size, a.stored,
       CASE a.codec WHEN 0 THEN 'none' ELSE 'zstd' END AS codec, a.place, a.created_at, f.url,
       nullif(f.status, 0) AS status
FROM pawl.artifact a LEFT JOIN pawl.fetch f ON f.job = a.job AND f.fence = a.fence AND f.artifact = a.id;

CREATE OR REPLACE VIEW pawl.v_fetches AS
SELECT job, fence, at, queue, url, final_url, variant, method, nullif(status, 0) AS status, content_type,
       encoding, etag, last_modified, headers, wire_bytes, body_bytes,
       encode(wire_sha256, 'hex') AS wire_sha256, encode(body_sha256, 'hex') AS body_sha256,
       nullif(dns_us, 0) AS dns_us, nullif(connect_us, 0) AS connect_us, nullif(tls_us, 0) AS tls_us,
       nullif(first_byte_us, 0) AS first_byte_us, total_us, address, http_version, redirects, artifact
FROM pawl.fetch;
