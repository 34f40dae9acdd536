-- The table's number makes the lock that of this store alone.

-- name: enter
SELECT pg_advisory_xact_lock_shared('att_log'::regclass::oid::bigint)

-- name: enter_alone
SELECT pg_advisory_xact_lock('att_log'::regclass::oid::bigint)
