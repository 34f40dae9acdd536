-- name: closures_by_key
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.click, c.click_due, c.timeout_id, c.body
FROM rows JOIN att_closure c ON c.key = rows.key ORDER BY c.key FOR UPDATE OF c
