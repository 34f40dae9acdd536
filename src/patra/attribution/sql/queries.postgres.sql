-- Here closures are found by key.

-- name: closure_by_key
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure WHERE key = :key

-- name: closures_of_keys
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.click, c.click_due, c.timeout_id, c.body, 0
FROM rows CROSS JOIN LATERAL (SELECT * FROM att_closure e WHERE e.key = rows.key LIMIT 1) c

-- name: newest_of_batch
SELECT number FROM (
  SELECT number FROM att_log WHERE batch_id = :batch_id AND kind = 'batch' OFFSET 0
) AS found ORDER BY number DESC LIMIT :limit

-- name: closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure
WHERE key > :key AND (:state = '' OR state = :state) ORDER BY key LIMIT :limit

-- name: open_closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure
WHERE state = 'open' AND substring(key FROM 1) > :key ORDER BY substring(key FROM 1) LIMIT :limit

-- name: failed_closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure
WHERE state = 'closed_failure' AND substring(key FROM 1) > :key ORDER BY substring(key FROM 1) LIMIT :limit

-- name: closures_looked_through
SELECT key FROM att_closure WHERE key > :key ORDER BY key LIMIT 1 OFFSET :look

-- name: succeeded_closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure
WHERE key > :key AND key <= :until AND state = 'closed_success' ORDER BY key LIMIT :limit

-- name: closures_by_deadline
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure
WHERE due_at >= :due AND due_at < :until AND (due_at > :due OR key > :key) AND (:app = '' OR app_id = :app)
ORDER BY due_at, key LIMIT :limit
