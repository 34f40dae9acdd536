-- name: deliveries_due
-- Each event by its key: of a queue the statistics are always of yesterday, and a join that is planned by them may read
-- the whole log. A LATERAL with a LIMIT leaves the planner no other way.
WITH taken AS MATERIALIZED (
  SELECT seq, order_key, attempts, due_at, replay, first_failed_at, lost FROM bus_delivery
  WHERE group_id = :group_id AND due_at <= :now ORDER BY due_at, seq LIMIT :limit FOR UPDATE SKIP LOCKED
)
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body, d.lost
FROM taken d CROSS JOIN LATERAL (SELECT * FROM bus_event x WHERE x.seq = d.seq LIMIT 1) e
ORDER BY d.due_at, d.seq

-- name: deliveries_due_by_key
-- Two workers that take events of one key get in each other's way: so the keys are dealt into 64 shards, each in the
-- hands of one worker until its transaction ends. The last column tells how many shards were in other hands.
WITH near AS MATERIALIZED (
  SELECT seq, due_at, order_key, get_byte(order_key, 0) & 63 AS shard FROM bus_delivery
  WHERE group_id = :group_id AND due_at <= :now ORDER BY due_at, seq LIMIT :window
), mine AS MATERIALIZED (
  SELECT shard, pg_try_advisory_xact_lock(:group_shards + shard) AS got
  FROM (SELECT DISTINCT shard FROM near WHERE ((shard - :first) & 63) < :share) wanted
), taken AS MATERIALIZED (
  SELECT d.* FROM (
    SELECT seq FROM near WHERE order_key IS NULL OR shard IN (SELECT shard FROM mine WHERE got) ORDER BY due_at, seq
  ) n CROSS JOIN LATERAL (
    SELECT x.seq, x.order_key, x.attempts, x.due_at, x.replay, x.first_failed_at, x.lost FROM bus_delivery x
    WHERE x.group_id = :group_id AND x.seq = n.seq AND x.due_at <= :now FOR UPDATE SKIP LOCKED
  ) d LIMIT :limit
)
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body, d.lost, (SELECT count(*) FROM mine WHERE NOT got)
FROM taken d CROSS JOIN LATERAL (SELECT * FROM bus_event x WHERE x.seq = d.seq LIMIT 1) e
ORDER BY d.due_at, d.seq

-- name: slot
SELECT 1 WHERE pg_try_advisory_xact_lock(:group_slot)

-- name: deliveries_heads
SELECT rows.order_key, h.seq, h.due_at FROM rows CROSS JOIN LATERAL (
  SELECT x.seq, x.due_at FROM bus_delivery x WHERE x.group_id = :group_id AND x.order_key = rows.order_key
  ORDER BY x.seq LIMIT 1
) h

-- name: deliveries_between
SELECT d.order_key, d.seq, d.due_at FROM rows JOIN bus_delivery d
ON d.group_id = :group_id AND d.order_key = rows.order_key AND d.seq BETWEEN rows.first AND rows.last

-- name: deliveries_call_up
WITH mine AS (
  SELECT d.seq FROM rows JOIN bus_delivery d
  ON d.group_id = :group_id AND d.order_key = rows.order_key AND d.seq < rows.before AND d.due_at <= :now
  FOR UPDATE OF d SKIP LOCKED
)
UPDATE bus_delivery SET due_at = 0 FROM mine WHERE bus_delivery.group_id = :group_id AND bus_delivery.seq = mine.seq

-- name: deliveries_wake_followers
UPDATE bus_delivery SET due_at = 0 FROM rows
WHERE bus_delivery.group_id = :group_id AND bus_delivery.order_key = rows.order_key
  AND bus_delivery.state = 'ready' AND bus_delivery.due_at > :now
