-- name: deliveries_due
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body, d.lost
FROM bus_delivery d JOIN bus_event e ON e.seq = d.seq
WHERE d.group_id = :group_id AND d.due_at <= :now
ORDER BY d.due_at, d.seq LIMIT :limit {skip_locked}

-- name: deliveries_due_by_key
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body, d.lost, 0
FROM bus_delivery d JOIN bus_event e ON e.seq = d.seq
WHERE d.group_id = :group_id AND d.due_at <= :now
ORDER BY d.due_at, d.seq LIMIT :limit

-- name: deliveries_heads
-- rows: order_key blob
SELECT d.order_key, d.seq, d.due_at FROM rows JOIN bus_delivery d ON d.group_id = :group_id AND d.seq = (
  SELECT x.seq FROM bus_delivery x WHERE x.group_id = :group_id AND x.order_key = rows.order_key
  ORDER BY x.seq LIMIT 1
)

-- name: deliveries_between
-- rows: order_key blob, first int, last int
SELECT d.order_key, d.seq, d.due_at FROM rows JOIN bus_delivery d ON d.group_id = :group_id AND d.seq IN (
  SELECT x.seq FROM bus_delivery x
  WHERE x.group_id = :group_id AND x.order_key = rows.order_key AND x.seq BETWEEN rows.first AND rows.last
)

-- name: deliveries_put_off
-- rows: seq int, due_at int
UPDATE bus_delivery SET due_at = rows.due_at FROM rows
WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq = rows.seq

-- name: deliveries_schedule
-- rows: group_id int, seq int, due_at int
-- Not before its time: as one that waits for a retry, it is called up by nobody else.
UPDATE bus_delivery SET due_at = rows.due_at, state = 'waiting' FROM rows
WHERE bus_delivery.group_id = rows.group_id AND bus_delivery.seq = rows.seq
  AND bus_delivery.state = 'ready' AND bus_delivery.attempts = 0

-- name: deliveries_done
-- rows: seq int
DELETE FROM bus_delivery WHERE group_id = :group_id AND seq IN (SELECT seq FROM rows)

-- name: deliveries_remove_repeats
-- rows: seq int
DELETE FROM bus_delivery
WHERE group_id IN (SELECT group_id FROM bus_group) AND seq IN (SELECT seq FROM rows) AND EXISTS (
  SELECT 1 FROM bus_event e JOIN bus_event o ON o.event_id = e.event_id AND o.seq < e.seq
  JOIN bus_delivery d ON d.group_id = bus_delivery.group_id AND d.seq = o.seq WHERE e.seq = bus_delivery.seq
)

-- name: deliveries_hold
-- rows: seq int, until int
UPDATE bus_delivery SET state = 'held', due_at = rows.until FROM rows
WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq = rows.seq

-- name: deliveries_return
-- rows: seq int, due_at int
UPDATE bus_delivery SET state = CASE WHEN attempts > 0 THEN 'waiting' ELSE 'ready' END, due_at = rows.due_at FROM rows
WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq = rows.seq AND bus_delivery.state = 'held'

-- name: deliveries_held
-- rows: seq int
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body, d.lost
FROM rows JOIN bus_delivery d ON d.group_id = :group_id AND d.seq = rows.seq JOIN bus_event e ON e.seq = d.seq

-- name: deliveries_failed
-- rows: seq int, state text, due_at int, attempts int, first_failed_at int, last_failed_at int, error_code text, error_detail text
UPDATE bus_delivery SET state = rows.state, due_at = rows.due_at, attempts = rows.attempts,
  first_failed_at = rows.first_failed_at, last_failed_at = rows.last_failed_at,
  error_code = rows.error_code, error_detail = rows.error_detail, lost = 0
FROM rows WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq = rows.seq

-- name: deliveries_replay
-- rows: seq int, order_key blob
INSERT INTO bus_delivery (group_id, seq, order_key, due_at, replay)
SELECT :group_id, seq, order_key, :now, 1 FROM rows WHERE true
ON CONFLICT (group_id, seq) DO UPDATE SET state = 'ready', due_at = excluded.due_at, attempts = 0, replay = 1,
  first_failed_at = NULL, last_failed_at = NULL, error_code = NULL, error_detail = NULL, lost = 0

-- name: deliveries_call_up
-- rows: order_key blob, before int
-- To the front of the line; those that waited go before those of their key that never had to, as they are older.
UPDATE bus_delivery SET due_at = 0 FROM rows WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq IN (
  SELECT x.seq FROM bus_delivery x WHERE x.group_id = :group_id AND x.order_key = rows.order_key
    AND x.seq < rows.before AND +x.due_at <= :now
)

-- name: deliveries_wake_followers
-- rows: order_key blob
UPDATE bus_delivery SET due_at = 0 FROM rows WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq IN (
  SELECT x.seq FROM bus_delivery x WHERE x.group_id = :group_id AND x.order_key = rows.order_key
    AND x.state = 'ready' AND +x.due_at > :now
)

-- name: deliveries_backfill
INSERT INTO bus_delivery (group_id, seq, order_key, due_at)
SELECT :group_id, e.seq, e.order_key, :now FROM bus_event e
WHERE e.event_type = :event_type AND e.body IS NOT NULL AND e.major = :major AND e.minor BETWEEN :first AND :last
  AND NOT EXISTS (
    SELECT 1 FROM bus_event o JOIN bus_delivery d ON d.group_id = :group_id AND d.seq = o.seq
    WHERE o.event_id = e.event_id AND o.major <> e.major
  )
ON CONFLICT (group_id, seq) DO NOTHING

-- name: deliveries_marked
-- Lines of a group that nobody tried yet, whose event has some mark in its body.
SELECT e.seq, e.body FROM bus_event e JOIN bus_delivery d ON d.group_id = :group_id AND d.seq = e.seq
WHERE e.event_type = :event_type AND e.major = :major AND e.body LIKE :mark AND d.state = 'ready' AND d.attempts = 0

-- name: deliveries_next_due
SELECT min(due_at) FROM bus_delivery WHERE group_id = :group_id

-- name: deliveries_of_event
SELECT g.name, d.state, e.published_at, d.due_at, d.attempts, d.lost, d.replay, d.first_failed_at, d.last_failed_at, d.error_code, d.error_detail
FROM bus_event e CROSS JOIN bus_group g CROSS JOIN bus_delivery d
WHERE e.event_id = :event_id AND d.group_id = g.group_id AND d.seq = e.seq ORDER BY g.name

-- name: deliveries_of_events
-- rows: event_id text
SELECT e.event_id, g.name, d.state, e.published_at, d.due_at, d.attempts, d.lost, d.replay, d.first_failed_at,
  d.last_failed_at, d.error_code, d.error_detail
-- SQLite keeps the order of cross joins: the event by its id, the few groups, then the key of each line.
FROM rows CROSS JOIN bus_event e CROSS JOIN bus_group g CROSS JOIN bus_delivery d
WHERE e.event_id = rows.event_id AND d.group_id = g.group_id AND d.seq = e.seq
ORDER BY e.seq, g.name LIMIT :limit

-- name: deliveries_failing
SELECT g.name, e.event_id, e.event_type, d.attempts, d.due_at, d.error_code, d.error_detail,
  CASE WHEN EXISTS (SELECT 1 FROM bus_webhook w WHERE 'webhook.' || w.name = g.name) THEN 1 ELSE 0 END AS webhook
FROM bus_group g CROSS JOIN bus_delivery d CROSS JOIN bus_event e
WHERE (:group_name = '' OR g.name = :group_name) AND d.group_id = g.group_id AND d.attempts > 0 AND d.state <> 'dead'
  AND e.seq = d.seq
ORDER BY d.due_at, d.seq LIMIT :limit

-- name: delivery_lost_ahead
UPDATE bus_delivery SET state = 'waiting', lost = lost + 1, due_at = :due_at, last_failed_at = :now,
  first_failed_at = COALESCE(first_failed_at, :now), error_code = :error_code, error_detail = :error_detail
WHERE group_id = :group_id AND seq = :seq

-- name: delivery_in_trial
SELECT 1 FROM bus_delivery WHERE group_id = :group_id AND seq = :seq AND lost = :lost {for_update}

-- name: slot
SELECT 1

-- name: deliveries_count_losses
-- rows: seq int
-- A loss is known when the event is taken again: then it has failed for the first time.
UPDATE bus_delivery SET lost = lost + :by,
  first_failed_at = CASE WHEN lost > 0 AND :by > 0 THEN COALESCE(first_failed_at, :now) ELSE first_failed_at END
FROM rows
WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq = rows.seq
