-- name: routing_lock_shared
SELECT pg_advisory_xact_lock_shared(7026818)

-- name: routing_lock
SELECT pg_advisory_xact_lock(7026818)

-- name: delivery_insert
INSERT INTO bus_delivery (group_id, seq, order_key, due_at)
SELECT group_id, seq, order_key, :now FROM rows WHERE true
ON CONFLICT (group_id, seq) DO NOTHING
RETURNING (SELECT pg_notify('patra_bus', '')) IS NULL

-- name: wake
SELECT pg_notify('patra_bus', :topic)
