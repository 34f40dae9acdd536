-- name: forget_keys
-- A WITH: PostgreSQL may run a subquery of IN several times, each time past its LIMIT.
WITH late AS (
  SELECT key FROM krn_ledger WHERE scope = :scope AND expires_at < :before ORDER BY expires_at LIMIT :limit {skip_locked}
)
DELETE FROM krn_ledger WHERE scope = :scope AND key IN (SELECT key FROM late) RETURNING key, cycle

-- name: remember_keys
-- rows: key blob, cycle int
INSERT INTO att_past (key, cycle) SELECT key, cycle FROM rows WHERE true
ON CONFLICT (key) DO UPDATE SET cycle = excluded.cycle

-- name: purge_log
DELETE FROM att_log WHERE number IN (
  SELECT number FROM att_log WHERE at < :before AND number >= :first AND number < :end
    AND number < (SELECT max(number) FROM att_log) ORDER BY at LIMIT :limit
)

-- name: purge_rejects
DELETE FROM att_reject WHERE key IN (
  SELECT key FROM att_reject WHERE at < :before ORDER BY at LIMIT :limit
)

-- name: packs_to_rewrite
-- rows: item int
SELECT item, body FROM att_decision WHERE item IN (SELECT item FROM rows) ORDER BY item {for_update}

-- name: rewrite_items
-- rows: item int, body blob
UPDATE att_decision SET body = rows.body FROM rows WHERE att_decision.item = rows.item

-- name: purge_items
-- rows: item int
DELETE FROM att_decision WHERE item IN (SELECT item FROM rows)

-- name: purge_statuses
-- rows: id int
DELETE FROM att_status WHERE id IN (SELECT id FROM rows)

-- name: purge_drops
-- rows: key blob
DELETE FROM att_drop WHERE key IN (SELECT key FROM rows)

-- name: oldest_item
SELECT min(item) FROM att_decision

-- name: purge_runs
DELETE FROM att_locator WHERE last < :oldest
