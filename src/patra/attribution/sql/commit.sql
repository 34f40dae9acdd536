-- name: enter
SELECT 1

-- name: enter_alone
SELECT 1

-- name: closures_by_key
-- rows: key key16
-- Only PostgreSQL; SQLite has them by number.
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.click, c.click_due, c.timeout_id, c.body, 0
FROM rows JOIN att_closure c ON c.key = rows.key ORDER BY c.key FOR UPDATE OF c

-- name: due_until
SELECT max(due_at) FROM (SELECT due_at FROM att_closure WHERE due_at <= :now ORDER BY due_at LIMIT :limit) AS first

-- name: closures_due
SELECT key FROM att_closure WHERE due_at <= :now ORDER BY due_at

-- name: next_due
SELECT min(due_at) FROM att_closure WHERE due_at IS NOT NULL

-- name: append_log
-- rows: place int, at int, kind text, app_id text, batch_id text, code text, body blob
INSERT INTO att_log (place, at, kind, app_id, batch_id, code, body)
SELECT place, at, kind, app_id, batch_id, code, body FROM rows WHERE true ORDER BY place
RETURNING number, place

-- name: append_decisions
-- rows: item int, at int, body blob
INSERT INTO att_decision (item, at, archived, body) SELECT item, at, :archived, body FROM rows WHERE true

-- name: insert_closures
-- rows: key key16, app_id text, opened_at int, state text, source text, due_at int, click text, click_due int, timeout_id int, body blob
INSERT INTO att_closure (key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body)
SELECT key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body FROM rows WHERE true

-- name: move_closures
-- rows: key key16, app_id text, opened_at int, state text, source text, due_at int, click text, click_due int, timeout_id int, body blob
-- They are there, and locked: an upsert finds them by their keys, where PostgreSQL would rather read the whole table for a join.
INSERT INTO att_closure (key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body)
SELECT key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body FROM rows WHERE true
ON CONFLICT (key) DO UPDATE SET state = excluded.state, source = excluded.source, due_at = excluded.due_at,
  click = excluded.click, click_due = excluded.click_due, timeout_id = excluded.timeout_id, body = excluded.body

-- name: insert_billables
-- rows: decision_id int, app_id text, billable_type text, opportunity blob, fact_hour int, fact_at int, closure blob
INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, closure, status)
SELECT decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, closure, :status FROM rows WHERE true

-- name: append_placements
-- rows: decision_id int, key blob, placement blob
INSERT INTO att_placement (decision_id, key, placement) SELECT decision_id, key, placement FROM rows WHERE true

-- name: count_drops
-- rows: key key16, decision_id int, count int
INSERT INTO att_drop (key, decision_id, count) SELECT key, decision_id, count FROM rows WHERE true
ON CONFLICT (key) DO UPDATE SET count = att_drop.count + excluded.count
RETURNING key, decision_id

-- name: write_rejects
-- rows: key blob, decision_id int, at int, app_id text, batch_id text, event_index int, code text, server_event_key text, digest text, raw blob, event_id text, field_path text, expected text, also_wrong text, count int
INSERT INTO att_reject (key, decision_id, at, app_id, batch_id, event_index, code, server_event_key, digest, raw, event_id, field_path, expected, also_wrong, count)
SELECT key, decision_id, at, app_id, batch_id, event_index, code, server_event_key, digest, raw, event_id, field_path, expected, also_wrong, count
FROM rows WHERE true
ON CONFLICT (key) DO UPDATE SET decision_id = excluded.decision_id, count = att_reject.count + excluded.count

-- name: state_before_superseding
-- rows: id int, item int
INSERT INTO att_status (id, attribution_status)
SELECT rows.id, CASE d.archived WHEN 1 THEN 'committed' ELSE 'new' END
FROM rows JOIN att_decision d ON d.item = rows.item WHERE true
ON CONFLICT (id) DO NOTHING

-- name: commit_before_superseding
-- rows: id int
UPDATE att_status SET attribution_status = 'committed' FROM rows
WHERE att_status.id = rows.id AND (att_status.attribution_status = 'new' OR att_status.attribution_status IS NULL)
RETURNING att_status.id

-- name: supersede
-- rows: id int
UPDATE att_status SET attribution_status = 'superseded' FROM rows
WHERE att_status.id = rows.id AND att_status.attribution_status = 'committed'
RETURNING att_status.id

-- name: announce
INSERT INTO att_intake (process, oldest, seen_at) VALUES (:process, :oldest, :now)
ON CONFLICT (process) DO UPDATE SET oldest = excluded.oldest, seen_at = excluded.seen_at

-- name: forget_lost
DELETE FROM att_intake WHERE seen_at < :lost

-- name: forget_intake
DELETE FROM att_intake WHERE process = :process

-- name: oldest_waiting
SELECT min(oldest) FROM att_intake
