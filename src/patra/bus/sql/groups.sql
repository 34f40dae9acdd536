-- name: group_add
INSERT INTO bus_group (name, state, created_at, changed_at) VALUES (:name, 'active', :now, :now)
ON CONFLICT (name) DO NOTHING

-- name: group_find
SELECT group_id, state FROM bus_group WHERE name = :name

-- name: group_set_state
UPDATE bus_group SET state = :state, changed_at = :now WHERE name = :name AND state <> :state

-- name: group_totals
SELECT g.name, g.state, g.group_id,
  (SELECT count(*) FROM bus_delivery d WHERE d.group_id = g.group_id) AS waiting,
  (SELECT count(*) FROM bus_delivery d WHERE d.group_id = g.group_id AND d.attempts > 0 AND d.state <> 'dead') AS failing,
  (SELECT count(*) FROM bus_delivery d WHERE d.group_id = g.group_id AND d.state = 'held') AS held,
  (SELECT min(e.published_at) FROM bus_event e WHERE e.seq = (
    SELECT min(d.seq) FROM bus_delivery d WHERE d.group_id = g.group_id)) AS oldest,
  (SELECT count(*) FROM bus_dead_letter l WHERE l.group_name = g.name AND l.state IN ('open', 'replaying')) AS dead
FROM bus_group g ORDER BY g.name

-- name: subscriptions
SELECT g.name, s.event_type, s.versions FROM bus_subscription s JOIN bus_group g ON g.group_id = s.group_id
ORDER BY g.name, s.event_type, s.versions

-- name: subscription_remove
DELETE FROM bus_subscription WHERE group_id = :group_id AND event_type = :event_type

-- name: subscriptions_remove_all
DELETE FROM bus_subscription WHERE group_id = :group_id

-- name: group_remove_deliveries
DELETE FROM bus_delivery WHERE group_id = :group_id

-- name: group_remove
DELETE FROM bus_group WHERE group_id = :group_id

-- name: acts
SELECT at, done_by, act, subject, detail FROM bus_act WHERE (:subject = '' OR subject = :subject) ORDER BY act_id DESC LIMIT :limit

-- name: catalogue_last
SELECT content FROM bus_catalogue ORDER BY release_id DESC LIMIT 1

-- name: position
SELECT incarnation, position FROM bus_position WHERE stream = :stream

-- name: position_set
-- A row that is gone was lost with what was read up to it: only who knows of none may write the first.
INSERT INTO bus_position (stream, incarnation, position, changed_at)
SELECT :stream, :incarnation, :position, :now
WHERE :was_position = 0 OR EXISTS (SELECT 1 FROM bus_position WHERE stream = :stream)
ON CONFLICT (stream) DO UPDATE SET incarnation = excluded.incarnation, position = excluded.position, changed_at = excluded.changed_at
WHERE bus_position.incarnation = :was_incarnation AND bus_position.position = :was_position

-- name: webhooks
SELECT name, url, secret, created_by, created_at FROM bus_webhook ORDER BY name

-- name: webhook_remove
DELETE FROM bus_webhook WHERE name = :name
