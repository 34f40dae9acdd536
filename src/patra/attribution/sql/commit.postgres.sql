-- The table's number makes the lock that of this store alone.

-- name: enter
SELECT pg_advisory_xact_lock_shared('att_log'::regclass::oid::bigint)

-- name: enter_alone
SELECT pg_advisory_xact_lock('att_log'::regclass::oid::bigint)

-- name: closures_by_key
-- As the kernel's ledger: LATERAL leaves PostgreSQL one lookup a key; it would rather read the whole table while that is
-- small, and go on so when it has grown.
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.click, c.click_due, c.timeout_id, c.body, 0
FROM (SELECT key FROM rows ORDER BY key) r
CROSS JOIN LATERAL (SELECT * FROM att_closure e WHERE e.key = r.key LIMIT 1 FOR UPDATE) c
