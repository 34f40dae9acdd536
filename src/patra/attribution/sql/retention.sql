-- name: first_after
SELECT at FROM att_log WHERE number > :number ORDER BY number LIMIT 1

-- name: purge_log
DELETE FROM att_log WHERE number IN (
  SELECT number FROM att_log WHERE at < :before AND number < :safe ORDER BY at LIMIT :limit
)

-- name: purge_rejects
DELETE FROM att_reject WHERE key IN (
  SELECT key FROM att_reject WHERE at < :before ORDER BY at LIMIT :limit
)

-- name: purge_decisions
-- rows: id int
DELETE FROM att_decision WHERE id IN (SELECT id FROM rows)

-- name: purge_drops
-- rows: key blob
DELETE FROM att_drop WHERE key IN (SELECT key FROM rows)

-- name: purge_locators
-- rows: key int, decision_id int
DELETE FROM att_locator WHERE (key, decision_id) IN (SELECT key, decision_id FROM rows)
