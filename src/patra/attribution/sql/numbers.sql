-- Closures by number; only SQLite has these.

-- name: closures_by_number
-- rows: number int
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.click, c.click_due, c.timeout_id, c.body, c.number
FROM rows JOIN att_closure c ON c.number = rows.number

-- name: insert_closures_by_number
-- rows: number int, key blob, app_id text, opened_at int, state text, source text, due_at int, click text, click_due int, timeout_id int, body blob
INSERT INTO att_closure (number, key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body)
SELECT number, key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body FROM rows WHERE true

-- name: update_closures_by_number
-- rows: number int, state text, source text, due_at int, click text, click_due int, timeout_id int, body blob
UPDATE att_closure SET state = rows.state, source = rows.source, due_at = rows.due_at, click = rows.click,
  click_due = rows.click_due, timeout_id = rows.timeout_id, body = rows.body
FROM rows WHERE att_closure.number = rows.number

-- name: closure_numbers
-- rows: key blob
SELECT k.key, k.number FROM rows JOIN att_closure_key k ON k.key = rows.key

-- name: closures_not_keyed
SELECT number, key FROM att_closure WHERE number > :keyed ORDER BY number

-- name: some_closure_key
SELECT 1 FROM att_closure_key LIMIT 1

-- name: key_closures
-- rows: key blob, number int
INSERT INTO att_closure_key (key, number) SELECT key, number FROM rows WHERE true ON CONFLICT (key) DO NOTHING
