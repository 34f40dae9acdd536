-- name: group_add
INSERT INTO bus_group (name, state, created_at, changed_at) VALUES (:name, 'active', :now, :now)
ON CONFLICT (name) DO NOTHING

-- name: group_find
SELECT group_id, state, remote FROM bus_group WHERE name = :name

-- name: group_names
SELECT name FROM bus_group ORDER BY name

-- name: group_set_state
UPDATE bus_group SET state = :state, changed_at = :now WHERE name = :name AND state <> :state

-- name: group_set_remote
UPDATE bus_group SET remote = 1 WHERE name = :name AND remote = 0

-- name: group_totals
-- The few that fail or are held have indexes of their own; without statistics SQLite would walk all that wait instead.
SELECT g.name, g.state, g.group_id,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d WHERE d.group_id = g.group_id LIMIT :most) w) AS waiting,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d INDEXED BY bus_delivery_failing
    WHERE d.group_id = g.group_id AND d.attempts > 0 AND d.state <> 'dead' LIMIT :most) f) AS failing,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d INDEXED BY bus_delivery_held
    WHERE d.group_id = g.group_id AND d.state = 'held' LIMIT :most) h) AS held,
  (SELECT min(e.published_at) FROM bus_event e WHERE e.seq = (
    SELECT min(d.seq) FROM bus_delivery d WHERE d.group_id = g.group_id)) AS oldest,
  (SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter l INDEXED BY bus_dead_letter_by_group
    WHERE l.group_name = g.name AND l.state = 'open' LIMIT :most) o)
  + (SELECT count(*) FROM (SELECT 1 FROM bus_dead_letter l INDEXED BY bus_dead_letter_by_group
    WHERE l.group_name = g.name AND l.state = 'replaying' LIMIT :most) r) AS dead
FROM bus_group g ORDER BY g.name

-- name: groups_oldest_waiting
-- Since when the oldest event could have been handled: one that was scheduled, tried or replayed, since it was due.
SELECT g.name, d.state, d.replay, d.due_at, e.published_at
FROM bus_group g CROSS JOIN bus_delivery d CROSS JOIN bus_event e
WHERE g.state = 'active' AND d.group_id = g.group_id AND e.seq = d.seq AND d.seq = (
  SELECT x.seq FROM bus_delivery x
  WHERE x.group_id = g.group_id AND (x.state = 'ready' OR (x.state = 'waiting' AND x.due_at <= :now))
  ORDER BY x.seq LIMIT 1)
ORDER BY g.name

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
SELECT c.content, c.digest FROM bus_catalogue_in_force f JOIN bus_catalogue c ON c.digest = f.digest

-- name: catalogue_version
SELECT version FROM bus_catalogue_in_force

-- name: catalogue_put_in_force
INSERT INTO bus_catalogue_in_force (only_row, version, digest, adopted_at) VALUES (1, 1, :digest, :now)
ON CONFLICT (only_row) DO UPDATE SET version = bus_catalogue_in_force.version + 1, digest = excluded.digest,
  adopted_at = excluded.adopted_at
WHERE bus_catalogue_in_force.digest <> excluded.digest

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
SELECT name, url, secret, created_by, created_at, tenants, old_secret, old_secret_until FROM bus_webhook ORDER BY name

-- name: webhook_states
SELECT name, last_success_at, suspended_at, suspended_reason FROM bus_webhook

-- name: webhook_rotate
UPDATE bus_webhook SET old_secret = secret, old_secret_until = :until, secret = :secret WHERE name = :name

-- name: webhooks_forget_old_secrets
UPDATE bus_webhook SET old_secret = '', old_secret_until = 0 WHERE old_secret <> '' AND old_secret_until <= :now

-- name: webhook_succeeded
UPDATE bus_webhook SET last_success_at = :now WHERE name = :name AND COALESCE(last_success_at, 0) < :before

-- name: webhook_suspend
UPDATE bus_webhook SET suspended_at = :now, suspended_reason = :reason WHERE name = :name

-- name: webhook_resume
UPDATE bus_webhook SET suspended_at = NULL, suspended_reason = '' WHERE name = :name

-- name: group_retry_now
UPDATE bus_delivery SET due_at = :now WHERE state = 'waiting' AND due_at > :now AND attempts > 0
  AND group_id = (SELECT group_id FROM bus_group WHERE name = :name)

-- name: webhook_remove
DELETE FROM bus_webhook WHERE name = :name
