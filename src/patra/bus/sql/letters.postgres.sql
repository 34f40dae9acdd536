-- name: backlog
-- In the order of an index, and by a range of one value: so no statistics make a scan of all dead letters look cheaper.
SELECT count(*) FROM (
  SELECT 1 FROM bus_dead_letter
  WHERE event_type BETWEEN CAST(:event_type AS text) AND CAST(:event_type AS text)
    AND (state = 'open' OR state = 'replaying') AND remote = 0 AND group_name NOT LIKE 'webhook.%'
  ORDER BY event_type LIMIT :most
) b

-- name: backlogs
WITH RECURSIVE types(event_type) AS (
  (SELECT event_type FROM bus_dead_letter ORDER BY event_type LIMIT 1)
  UNION ALL
  SELECT (SELECT l.event_type FROM bus_dead_letter l WHERE l.event_type > t.event_type ORDER BY l.event_type LIMIT 1)
  FROM types t WHERE t.event_type IS NOT NULL
)
SELECT t.event_type, (
  SELECT count(*) FROM (VALUES ('open'), ('replaying')) s(state) CROSS JOIN LATERAL (
    SELECT 1 FROM bus_dead_letter l WHERE l.event_type = t.event_type AND l.state BETWEEN s.state AND s.state
    ORDER BY l.event_type, l.state LIMIT :most) b)
FROM types t WHERE t.event_type IS NOT NULL ORDER BY t.event_type

-- name: letters_waiting
SELECT s.state, (
  SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter l WHERE l.state BETWEEN s.state AND s.state
    ORDER BY l.state, l.last_failed_at, l.letter_id LIMIT :most) w)
FROM (VALUES ('open'), ('replaying')) s(state)

-- name: letters_reopen
WITH reopened AS (
  UPDATE bus_dead_letter SET state = :became WHERE group_name = :group_name AND state = :was RETURNING letter_id
)
INSERT INTO krn_move (subject, machine, was, on_event, became, reason_code, moved_at, rule_version)
SELECT letter_id, :machine, :was, :on_event, :became, :reason, :now, :rule_version
FROM reopened ORDER BY letter_id
