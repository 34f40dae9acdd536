-- name: log_numbers
-- rows: number int
SELECT l.number FROM rows JOIN att_log l ON l.number = rows.number

-- name: log_after
SELECT number FROM att_log WHERE number > :after ORDER BY number LIMIT :limit

-- name: log_newest_before
SELECT number FROM att_log WHERE number <= :number AND at <= :before ORDER BY number DESC LIMIT 1

-- name: log_of_batch
SELECT number FROM att_log WHERE batch_id = :batch_id ORDER BY number

-- name: batch_ids
-- rows: number int
SELECT l.number, l.batch_id FROM rows JOIN att_log l ON l.number = rows.number

-- name: index_decisions
-- rows: key int, decision_id int
INSERT INTO att_locator (key, decision_id) SELECT key, decision_id FROM rows WHERE true ON CONFLICT DO NOTHING

-- name: located
-- rows: key int
SELECT i.decision_id FROM rows JOIN att_locator i ON i.key = rows.key

-- name: billable_by_key
SELECT decision_id FROM att_billable WHERE key = :key

-- name: mark
SELECT value FROM att_mark WHERE name = :name

-- name: set_mark
INSERT INTO att_mark (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value
