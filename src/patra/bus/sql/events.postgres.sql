-- name: routing_lock_shared
SELECT pg_advisory_xact_lock_shared(7026818)

-- name: routing_lock
SELECT pg_advisory_xact_lock(7026818)

-- name: wake
SELECT pg_notify('patra_bus', :topic)
