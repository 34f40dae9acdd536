-- name: open_history_file
SELECT number, kind, first, last, cutoff, file, row_count, sha256, first_at, last_at, held_until, deleted_at, verified_at FROM att_history_file
WHERE kind = :kind AND deleted_at IS NULL AND (held_until IS NULL OR held_until < :now) ORDER BY number LIMIT 1

-- name: add_history_file
-- Not one whose rows are in a file already, and still in the store: they were looked for before that file was written.
INSERT INTO att_history_file (kind, first, last, cutoff, planned_at)
SELECT :kind, :first, :last, :cutoff, :planned_at WHERE NOT EXISTS (
  SELECT 1 FROM att_history_file
  WHERE kind = :kind AND file IS NOT NULL AND deleted_at IS NULL AND first <= :last AND last >= :first
)
ON CONFLICT DO NOTHING

-- name: enter_history_file
UPDATE att_history_file SET file = :file, row_count = :rows, sha256 = :sha256, first_at = :first_at, last_at = :last_at,
  last = :last, exported_at = :exported_at
WHERE number = :number AND file IS NULL

-- name: history_file_under_way
SELECT number FROM att_history_file WHERE number = :number AND file = :file AND deleted_at IS NULL {for_update}

-- name: reset_history_file
UPDATE att_history_file SET file = NULL, row_count = NULL, sha256 = NULL, first_at = NULL, last_at = NULL, exported_at = NULL
WHERE number = :number

-- name: drop_history_span
DELETE FROM att_history_file WHERE number = :number AND file IS NULL

-- name: end_history_file
UPDATE att_history_file SET deleted_at = :now, held_until = NULL WHERE number = :number

-- name: hold_history_file
UPDATE att_history_file SET deleted_at = NULL, held_until = :until, verified_at = NULL WHERE number = :number

-- name: verify_history_file
-- Its rows wait to leave with their partition; where that does not come, they are deleted after the hold.
UPDATE att_history_file SET verified_at = :now, held_until = :until WHERE number = :number

-- name: verified_log_files
SELECT first, last, row_count FROM att_history_file
WHERE kind = 'log' AND deleted_at IS NULL AND verified_at IS NOT NULL AND first >= :first AND last < :end ORDER BY first

-- name: end_verified_files
UPDATE att_history_file SET deleted_at = :now, held_until = NULL
WHERE kind = 'log' AND deleted_at IS NULL AND verified_at IS NOT NULL AND first >= :first AND last < :end

-- name: history_files
SELECT number, kind, first, last, cutoff, file, row_count, sha256, first_at, last_at, held_until, deleted_at, verified_at FROM att_history_file
WHERE file IS NOT NULL AND (:kind = '' OR kind = :kind) AND last_at >= :begin AND first_at < :end ORDER BY kind, first, number

-- name: history_rows
SELECT kind, sum(row_count) FROM att_history_file WHERE deleted_at IS NOT NULL GROUP BY kind ORDER BY kind

-- name: log_lines_to_export
-- Lines that were brought back from a file are in it already.
SELECT l.number, l.at, coalesce(length(l.body), 0) FROM att_log l
WHERE l.at < :before AND l.number >= :first AND l.number < :end
  AND l.number < (SELECT max(number) FROM att_log) AND NOT EXISTS (
  SELECT 1 FROM att_history_file h
  WHERE h.kind = 'log' AND h.file IS NOT NULL AND h.deleted_at IS NULL AND h.first <= l.number AND h.last >= l.number
) ORDER BY l.number LIMIT :limit

-- name: log_lines_of_span
SELECT number, place, at, kind, app_id, batch_id, code, body FROM att_log
WHERE number >= :first AND number <= :last AND at < :cutoff ORDER BY number

-- name: purge_log_lines
-- rows: number int
DELETE FROM att_log WHERE number IN (SELECT number FROM rows)

-- name: statements_of_settled
-- rows: id int
-- Facts that settlement counts, each with its statement, if it is in one.
SELECT f.decision_id, f.app_id, s.number FROM rows JOIN att_settled f ON f.decision_id = rows.id
LEFT JOIN att_statement_fact s ON s.decision_id = f.decision_id

-- name: clicks_of_impressions
-- rows: id int
-- SQLite: by the tree, and of those that it has not reached by looking them through.
SELECT i.decision_id, c.decision_id, c.status FROM rows JOIN att_billable i ON i.decision_id = rows.id
JOIN att_billing_key k ON k.closure = i.closure AND k.billable_type = 'billable_click'
JOIN att_billable c ON c.decision_id = k.decision_id
UNION ALL
SELECT i.decision_id, c.decision_id, c.status FROM rows JOIN att_billable i ON i.decision_id = rows.id
JOIN att_billable c ON c.closure = i.closure AND c.billable_type = 'billable_click'
WHERE c.decision_id > (SELECT value FROM att_mark WHERE name = 'billing_keyed')

-- name: lost_impressions_of_clicks
-- rows: id int
SELECT b.decision_id, l.decision_id FROM rows JOIN att_billable b ON b.decision_id = rows.id
JOIN att_lost_impression l ON l.closure = b.closure WHERE b.billable_type = 'billable_click'

-- name: settled_facts_to_export
-- SQLite: only facts whose closure is in the tree of keys, by which it is found.
SELECT b.decision_id, s.app_id, s.number FROM att_billable b
JOIN att_statement_fact s ON s.decision_id = b.decision_id
JOIN att_statement t ON t.app_id = s.app_id AND t.number = s.number
WHERE b.decision_id > :after AND b.decision_id <= :bound AND t.closed_at < :before
  AND (b.closure IS NULL OR EXISTS (SELECT 1 FROM att_closure_key k WHERE k.key = b.closure))
  AND NOT EXISTS (
    SELECT 1 FROM att_sum_pending p WHERE p.sums IN ('hour', 'placement') AND p.decision_id = b.decision_id)
ORDER BY b.decision_id LIMIT :limit

-- name: settled_facts_of_span
SELECT b.decision_id, b.fact_at, b.app_id, b.billable_type, o.placement, b.opportunity, s.number, t.period, b.closure,
  c.state, c.source, c.opened_at, c.body
FROM att_billable b JOIN att_statement_fact s ON s.decision_id = b.decision_id
JOIN att_statement t ON t.app_id = s.app_id AND t.number = s.number
LEFT JOIN att_opportunity o ON o.key = b.opportunity
LEFT JOIN att_closure_key k ON k.key = b.closure LEFT JOIN att_closure c ON c.number = k.number
WHERE b.decision_id >= :first AND b.decision_id <= :last AND t.closed_at < :cutoff
  AND (b.closure IS NULL OR k.key IS NOT NULL)
  AND NOT EXISTS (
    SELECT 1 FROM att_sum_pending p WHERE p.sums IN ('hour', 'placement') AND p.decision_id = b.decision_id)
ORDER BY b.decision_id

-- name: billables_left
-- rows: id int
SELECT b.decision_id FROM rows JOIN att_billable b ON b.decision_id = rows.id

-- name: purge_billables
-- rows: id int
DELETE FROM att_billable WHERE decision_id IN (SELECT id FROM rows) RETURNING decision_id

-- name: purge_stated
-- rows: id int
DELETE FROM att_statement_fact WHERE decision_id IN (SELECT id FROM rows)

-- name: purge_billing_keys
-- rows: id int, closure blob, billable_type text
-- Only SQLite.
DELETE FROM att_billing_key WHERE (closure, billable_type, decision_id) IN (SELECT closure, billable_type, id FROM rows)

-- name: reduce_closures
-- rows: key blob, body blob
UPDATE att_closure SET body = rows.body FROM rows JOIN att_closure_key k ON k.key = rows.key
WHERE att_closure.number = k.number AND att_closure.state <> 'open' AND att_closure.due_at IS NULL

-- name: add_to_purged_sums
-- rows: fact_hour int, app_id text, billable_type text, placement blob, opportunity blob, facts int
INSERT INTO att_sum_purged (fact_hour, app_id, billable_type, placement, opportunity, facts)
SELECT fact_hour, app_id, billable_type, placement, opportunity, facts FROM rows WHERE true
ON CONFLICT (fact_hour, app_id, billable_type, placement, opportunity) DO UPDATE SET facts = att_sum_purged.facts + excluded.facts

-- name: purged_facts
SELECT coalesce(sum(facts), 0) FROM att_sum_purged
WHERE fact_hour >= :first AND fact_hour < :last AND (:app_id = '' OR app_id = :app_id)
