-- name: deliveries_due
SELECT d.seq, d.order_key, d.attempts, d.due_at, d.replay, d.first_failed_at, e.event_type, e.major, e.minor,
  e.event_id, e.published_at, e.body
FROM bus_delivery d JOIN bus_event e ON e.seq = d.seq
WHERE d.group_id = :group_id AND d.due_at <= :now
ORDER BY d.due_at, d.seq LIMIT :limit FOR UPDATE OF d SKIP LOCKED

-- name: slot
SELECT 1 WHERE pg_try_advisory_xact_lock(:group_slot)
