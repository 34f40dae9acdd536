-- The table's number makes the lock that of this store alone.

-- name: enter
SELECT pg_advisory_xact_lock_shared('att_log'::regclass::oid::bigint)

-- name: enter_alone
SELECT pg_advisory_xact_lock('att_log'::regclass::oid::bigint)

-- name: closures_by_key
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.click, c.click_due, c.timeout_id, c.body
FROM rows JOIN att_closure c ON c.key = rows.key ORDER BY c.key FOR UPDATE OF c
