-- name: letter_write
-- rows: letter_id text, group_id int, group_name text, seq int, order_key blob, event_id text, event_type text, event_version text, producer text, tenant_id text, trace_id text, correlation_id text, error_code text, error_detail text, reason text, attempts int, first_failed_at int, last_failed_at int, envelope text, traceback text, error_shape text
INSERT INTO bus_dead_letter (letter_id, group_id, group_name, seq, order_key, event_id, event_type, event_version,
  producer, tenant_id, trace_id, correlation_id, error_code, error_detail, reason, attempts, first_failed_at,
  last_failed_at, state, envelope, traceback, error_shape, remote)
SELECT letter_id, group_id, group_name, seq, order_key, event_id, event_type, event_version,
  producer, tenant_id, trace_id, correlation_id, error_code, error_detail, reason, attempts, first_failed_at,
  last_failed_at, 'open', envelope, traceback, error_shape,
  COALESCE((SELECT g.remote FROM bus_group g WHERE g.group_id = rows.group_id), 0) FROM rows WHERE true
ON CONFLICT (letter_id) DO UPDATE SET state = 'open', group_id = excluded.group_id, error_code = excluded.error_code,
  error_detail = excluded.error_detail, reason = excluded.reason,
  traceback = excluded.traceback, error_shape = excluded.error_shape, remote = excluded.remote,
  attempts = bus_dead_letter.attempts + excluded.attempts, last_failed_at = excluded.last_failed_at,
  closed_by = NULL, closed_at = NULL, close_reason = NULL, seq = excluded.seq, order_key = excluded.order_key
WHERE bus_dead_letter.state <> 'open'

-- name: letters_states
-- rows: letter_id text
SELECT l.letter_id, l.state FROM rows JOIN bus_dead_letter l ON l.letter_id = rows.letter_id

-- name: letters_by_id
-- rows: letter_id text
SELECT l.* FROM rows JOIN bus_dead_letter l ON l.letter_id = rows.letter_id

-- name: letters
SELECT * FROM bus_dead_letter l
WHERE (:group_name = '' OR l.group_name = :group_name) AND (:event_type = '' OR l.event_type = :event_type)
  AND (:event_id = '' OR l.event_id = :event_id) AND (:error_code = '' OR l.error_code = :error_code)
  AND (:trace_id = '' OR l.trace_id = :trace_id) AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
  AND (:state = '' OR l.state = :state) AND (:error_shape = '' OR l.error_shape = :error_shape)
  AND l.last_failed_at >= :failed_from AND l.last_failed_at < :failed_to
  AND (l.last_failed_at < :before_at OR (l.last_failed_at = :before_at AND l.letter_id < :before_id))
ORDER BY l.last_failed_at DESC, l.letter_id DESC LIMIT :limit

-- name: letters_by_error
SELECT l.group_name AS "group", l.event_type, l.error_code, l.error_shape, count(*) AS letters,
  min(l.first_failed_at) AS first_failed_at, max(l.last_failed_at) AS last_failed_at, max(l.event_id) AS event_id
FROM bus_dead_letter l
WHERE (:group_name = '' OR l.group_name = :group_name) AND (:event_type = '' OR l.event_type = :event_type)
  AND (:event_id = '' OR l.event_id = :event_id) AND (:error_code = '' OR l.error_code = :error_code)
  AND (:trace_id = '' OR l.trace_id = :trace_id) AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
  AND (:state = '' OR l.state = :state) AND (:error_shape = '' OR l.error_shape = :error_shape)
  AND l.last_failed_at >= :failed_from AND l.last_failed_at < :failed_to
GROUP BY l.group_name, l.event_type, l.error_code, l.error_shape ORDER BY count(*) DESC, l.group_name, l.event_type,
  l.error_code, l.error_shape LIMIT :limit

-- name: letters_reach
SELECT min(last_failed_at), count(*) FROM (
  SELECT l.last_failed_at FROM bus_dead_letter l WHERE (:group_name = '' OR l.group_name = :group_name) AND (:event_type = '' OR l.event_type = :event_type)
    AND (:event_id = '' OR l.event_id = :event_id) AND (:error_code = '' OR l.error_code = :error_code)
    AND (:trace_id = '' OR l.trace_id = :trace_id) AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
    AND (:state = '' OR l.state = :state) AND (:error_shape = '' OR l.error_shape = :error_shape)
    AND l.last_failed_at >= :failed_from AND l.last_failed_at < :failed_to
  ORDER BY l.last_failed_at DESC LIMIT :most
) latest

-- name: letters_over_time
SELECT (last_failed_at - :since) / :step, count(*) FROM (
  SELECT l.last_failed_at FROM bus_dead_letter l WHERE (:group_name = '' OR l.group_name = :group_name) AND (:event_type = '' OR l.event_type = :event_type)
    AND (:event_id = '' OR l.event_id = :event_id) AND (:error_code = '' OR l.error_code = :error_code)
    AND (:trace_id = '' OR l.trace_id = :trace_id) AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
    AND (:state = '' OR l.state = :state) AND (:error_shape = '' OR l.error_shape = :error_shape)
    AND l.last_failed_at >= :failed_from AND l.last_failed_at < :failed_to
  ORDER BY l.last_failed_at DESC LIMIT :most
) latest GROUP BY 1

-- name: letters_of_events
-- rows: event_id text
SELECT l.* FROM rows JOIN bus_dead_letter l ON l.event_id = rows.event_id ORDER BY l.last_failed_at LIMIT :limit

-- name: letters_count_replay
-- rows: letter_id text
UPDATE bus_dead_letter SET replay_count = replay_count + 1, replayed_by = :by, replayed_at = :now FROM rows
WHERE bus_dead_letter.letter_id = rows.letter_id

-- name: letters_close
-- rows: letter_id text
UPDATE bus_dead_letter SET closed_by = :by, closed_at = :now, close_reason = :reason FROM rows
WHERE bus_dead_letter.letter_id = rows.letter_id

-- name: letters_reopen_journal
-- Before `letters_reopen`, in its transaction; not on PostgreSQL, where that statement journals, too.
INSERT INTO krn_move (subject, machine, was, on_event, became, reason_code, moved_at, rule_version)
SELECT letter_id, :machine, :was, :on_event, :became, :reason, :now, :rule_version
FROM bus_dead_letter WHERE group_name = :group_name AND state = :was ORDER BY letter_id

-- name: letters_reopen
UPDATE bus_dead_letter SET state = :became WHERE group_name = :group_name AND state = :was

-- name: backlog
-- B9: what an endpoint or a remote consumer did not take freezes nobody, also after its group was forgotten.
SELECT count(*) FROM (
  SELECT 1 FROM bus_dead_letter INDEXED BY bus_dead_letter_freezing
  WHERE event_type = :event_type AND (state = 'open' OR state = 'replaying') AND remote = 0
    AND group_name NOT LIKE 'webhook.%' LIMIT :most
) b

-- name: backlogs
-- From type to type along the index, and of each no more than a bound.
WITH RECURSIVE types(event_type) AS (
  SELECT min(event_type) FROM bus_dead_letter
  UNION ALL
  SELECT (SELECT min(l.event_type) FROM bus_dead_letter l WHERE l.event_type > t.event_type)
  FROM types t WHERE t.event_type IS NOT NULL
)
SELECT t.event_type,
  (SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter l INDEXED BY bus_dead_letter_backlog
    WHERE l.event_type = t.event_type AND l.state = 'open' LIMIT :most) o)
  + (SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter l INDEXED BY bus_dead_letter_backlog
    WHERE l.event_type = t.event_type AND l.state = 'replaying' LIMIT :most) r)
FROM types t WHERE t.event_type IS NOT NULL ORDER BY t.event_type

-- name: letters_waiting
SELECT 'open', (SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter WHERE state = 'open' LIMIT :most) o)
UNION ALL
SELECT 'replaying', (SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter WHERE state = 'replaying' LIMIT :most) r)

-- name: freeze_ensure
INSERT INTO bus_freeze (event_type, state, since, reason, done_by, tolerated) VALUES (:event_type, 'open', 0, '', '', 0)
ON CONFLICT (event_type) DO NOTHING

-- name: freeze_lock
SELECT state, since, reason, done_by, tolerated FROM bus_freeze WHERE event_type = :event_type {for_update}

-- name: freeze_set
UPDATE bus_freeze SET state = :state, since = :since, reason = :reason, done_by = :done_by, tolerated = :tolerated
WHERE event_type = :event_type

-- name: freezes_ever
-- What this store itself froze, and what it froze once and has thawed since.
SELECT event_type, state, since, reason, done_by, tolerated FROM bus_freeze WHERE state <> 'open' OR since > 0
ORDER BY event_type

-- name: freezes
SELECT event_type, state, since, reason, done_by, tolerated FROM bus_freeze WHERE state <> 'open'
UNION ALL
SELECT event_type, 'frozen', since, reason, '', 0 FROM bus_remote_freeze
ORDER BY event_type, since, reason

-- name: letters_settled
-- The index has when it failed last, which is before it was settled.
SELECT letter_id FROM bus_dead_letter
WHERE state = :state AND last_failed_at < :before AND coalesce(closed_at, replayed_at, last_failed_at) < :before
ORDER BY last_failed_at, letter_id LIMIT :limit {for_update}

-- name: letters_delete
-- rows: letter_id text
DELETE FROM bus_dead_letter WHERE letter_id IN (SELECT letter_id FROM rows)
