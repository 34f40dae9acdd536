-- name: deliveries_due
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body, d.lost
FROM bus_delivery d JOIN bus_event e ON e.seq = d.seq
WHERE d.group_id = :group_id AND d.due_at <= :now
ORDER BY d.due_at, d.seq LIMIT :limit FOR UPDATE OF d SKIP LOCKED

-- name: slot
SELECT 1 WHERE pg_try_advisory_xact_lock(:group_slot)

-- name: deliveries_between
SELECT d.order_key, d.seq, d.due_at FROM rows JOIN bus_delivery d
ON d.group_id = :group_id AND d.order_key = rows.order_key AND d.seq BETWEEN rows.first AND rows.last

-- name: deliveries_wake_followers
UPDATE bus_delivery SET due_at = :now FROM rows
WHERE bus_delivery.group_id = :group_id AND bus_delivery.order_key = rows.order_key
  AND bus_delivery.state = 'ready' AND bus_delivery.due_at > :now
