-- Here closures are found by key.

-- name: closure_by_key
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure WHERE key = :key

-- name: closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, 0 FROM att_closure
WHERE key > :key AND (:state = '' OR state = :state) ORDER BY key LIMIT :limit
