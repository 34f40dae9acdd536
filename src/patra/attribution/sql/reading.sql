-- name: decisions_after
SELECT id, audit_status, attribution_status, settled_code, body FROM att_decision WHERE id > :after ORDER BY id LIMIT :limit

-- name: decisions_by_id
-- rows: id int
SELECT d.id, d.audit_status, d.attribution_status, d.settled_code, d.body FROM rows JOIN att_decision d ON d.id = rows.id

-- name: closures_after
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body
FROM att_closure WHERE key > :after ORDER BY key LIMIT :limit

-- name: something_due
SELECT 1 FROM att_closure WHERE due_at <= :now LIMIT 1

-- name: decisions_of_items
-- rows: first int, past int
SELECT d.id, d.audit_status, d.attribution_status, d.settled_code, d.body
FROM rows JOIN att_decision d ON d.id >= rows.first AND d.id < rows.past
