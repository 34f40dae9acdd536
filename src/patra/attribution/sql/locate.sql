-- name: log_of_batch
SELECT number FROM att_log WHERE batch_id = :batch_id ORDER BY number

-- name: bodies_of_batch
SELECT app_id, at, body FROM att_log WHERE batch_id = :batch_id AND body IS NOT NULL AND kind = 'batch'
ORDER BY number DESC LIMIT :limit

-- name: batch_ids
-- rows: number int
SELECT l.number, l.batch_id FROM rows JOIN att_log l ON l.number = rows.number

-- name: fresh_items
SELECT d.item, d.at, d.body, l.batch_id FROM att_decision d LEFT JOIN att_log l ON l.number = d.item
WHERE d.item > :after ORDER BY d.item LIMIT :limit

-- name: newest_item
SELECT max(item) FROM att_decision

-- name: gaps
SELECT item FROM att_gap ORDER BY item

-- name: gaps_seen_before
SELECT item FROM att_gap WHERE seen_at < :before ORDER BY item

-- name: gaps_filled
SELECT g.item, d.at, d.body, l.batch_id
FROM att_gap g JOIN att_decision d ON d.item = g.item LEFT JOIN att_log l ON l.number = g.item ORDER BY g.item

-- name: add_gaps
-- rows: item int
INSERT INTO att_gap (item, seen_at) SELECT item, :now FROM rows WHERE true ON CONFLICT (item) DO NOTHING

-- name: close_gaps
-- rows: item int
DELETE FROM att_gap WHERE item IN (SELECT item FROM rows)

-- name: add_run
-- rows: bucket int, body blob
INSERT INTO att_locator (bucket, run, last, body) SELECT bucket, :run, :last, body FROM rows WHERE true

-- name: runs_of_bucket
SELECT body FROM att_locator WHERE bucket = :bucket ORDER BY run

-- name: runs_with_hash
SELECT body FROM att_locator WHERE bucket = :bucket AND instr(body, :part) > 0 ORDER BY run

-- name: migration_applied_at
SELECT applied_at FROM krn_migration WHERE package = 'patra.attribution' AND number = :number

-- name: mark
SELECT value FROM att_mark WHERE name = :name

-- name: set_mark
INSERT INTO att_mark (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: move_mark
UPDATE att_mark SET value = :value WHERE name = :name AND value = :was

-- name: next_run
UPDATE att_mark SET value = value + 1 WHERE name = 'runs' RETURNING value

-- name: runs_to_merge
SELECT run, last, body FROM att_locator WHERE bucket = :bucket AND run >= :first AND run <= :last ORDER BY run

-- name: delete_merged
DELETE FROM att_locator WHERE bucket = :bucket AND run >= :first AND run <= :last

-- name: move_merge
UPDATE att_mark SET value = :value WHERE name = 'merge_bucket' AND value = :was
  AND EXISTS (SELECT 1 FROM att_mark m WHERE m.name = 'merged_runs' AND m.value = :runs)
