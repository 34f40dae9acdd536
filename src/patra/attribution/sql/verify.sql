-- name: billed_twice
SELECT closure, billable_type FROM att_billable WHERE closure IS NOT NULL
GROUP BY closure, billable_type HAVING count(*) > 1 LIMIT :limit

-- name: closures_twice
SELECT key FROM att_closure GROUP BY key HAVING count(*) > 1 LIMIT :limit

-- name: keys_astray
-- Only SQLite: entries of the tree of closure keys that lead to no closure, or to that of another key.
SELECT k.key FROM att_closure_key k LEFT JOIN att_closure c ON c.number = k.number
WHERE c.number IS NULL OR c.key <> k.key LIMIT :limit

-- name: closures_unkeyed
-- Only SQLite: closures that the tree should have.
SELECT c.key FROM att_closure c LEFT JOIN att_closure_key k ON k.key = c.key
WHERE k.key IS NULL AND c.number <= (SELECT value FROM att_mark WHERE name = 'closures_keyed') LIMIT :limit

-- name: decisions_without_a_line
SELECT d.item FROM att_decision d LEFT JOIN att_log l ON l.number = d.item
WHERE l.number IS NULL AND d.at >= :since LIMIT :limit

-- name: billables_of_items
SELECT decision_id, billable_type, closure, app_id, fact_at, fact_hour, opportunity FROM att_billable
WHERE decision_id >= :first AND decision_id <= :last ORDER BY decision_id

-- name: billables_of_decisions
-- rows: id int
SELECT b.decision_id, b.billable_type, b.closure, b.app_id, b.fact_at, b.fact_hour, b.opportunity
FROM rows JOIN att_billable b ON b.decision_id = rows.id

-- name: items_without_a_line
SELECT d.item FROM att_decision d LEFT JOIN att_log l ON l.number = d.item
WHERE d.item >= :first AND d.item <= :last AND l.number IS NULL AND d.at >= :since

-- name: facts_with_entries
-- Only SQLite: facts of some decisions, each with the fact that the tree has for its billing key.
SELECT b.decision_id, b.billable_type, b.closure, k.decision_id FROM att_billable b
LEFT JOIN att_billing_key k ON k.closure = b.closure AND k.billable_type = b.billable_type
WHERE b.decision_id >= :first AND b.decision_id <= :last AND b.closure IS NOT NULL ORDER BY b.decision_id

-- name: closures_with_entries
-- Only SQLite: closures in their order, each with the number that the tree has for its key.
SELECT c.number, c.key, k.number FROM att_closure c LEFT JOIN att_closure_key k ON k.key = c.key
WHERE c.number > :after ORDER BY c.number LIMIT :limit

-- name: ledger_page
-- Entries in the order in which they end; those that end at the instant of the last one come along.
SELECT key, cycle, first_at, expires_at FROM krn_ledger
WHERE scope = :scope AND expires_at > :after AND expires_at <= (
  SELECT max(expires_at) FROM (
    SELECT expires_at FROM krn_ledger WHERE scope = :scope AND expires_at > :after ORDER BY expires_at LIMIT :limit
  ) AS first
) ORDER BY expires_at

-- name: recent_page
SELECT number, body FROM att_recent WHERE number > :after ORDER BY number LIMIT :limit

-- name: lines_at
-- rows: at int
SELECT l.at, l.number FROM rows JOIN att_log l ON l.at = rows.at WHERE l.kind = 'batch'

-- name: items_received_at
-- rows: at int
SELECT item FROM att_decision WHERE at IN (SELECT at FROM rows)

-- name: line_sizes
SELECT number, coalesce(length(body), 0) FROM att_log WHERE number > :after ORDER BY number LIMIT :limit

-- name: lines_between
SELECT number, at, kind, body FROM att_log WHERE number >= :first AND number <= :last ORDER BY number

-- name: drop_counts
-- rows: key key16
SELECT d.key, d.count FROM rows JOIN att_drop d ON d.key = rows.key

-- name: drops_between
SELECT decision_id, key, count FROM att_drop WHERE decision_id >= :first AND decision_id <= :last

-- name: rejects_between
-- A row a decision: its rejected events taken together, however many they are.
SELECT decision_id, count(*), count(count), coalesce(sum(count), 0), min(at), min(code), max(code), min(app_id), max(app_id),
  sum(CASE WHEN raw IS NULL AND field_path = 'responseReference' AND code <> 'f_closure_foreign_app' THEN 1 ELSE 0 END)
FROM att_reject WHERE decision_id >= :first AND decision_id <= :last GROUP BY decision_id

-- name: dropped_events
SELECT coalesce((SELECT max(number) FROM att_log), 0), coalesce((SELECT sum(count) FROM att_drop), 0)

-- name: newest_line
SELECT max(number) FROM att_log

-- name: last_expiry
SELECT max(expires_at) FROM krn_ledger WHERE scope = :scope

-- name: newest_closure
-- Only SQLite.
SELECT max(number) FROM att_closure

-- name: placements_of_decisions
-- rows: id int
SELECT p.decision_id, p.key, p.placement FROM rows JOIN att_placement p ON p.decision_id = rows.id

-- name: carried_placements
-- rows: key blob
SELECT o.key, o.placement FROM rows JOIN att_opportunity o ON o.key = rows.key

-- name: every_statement
SELECT app_id, number, hash, body FROM att_statement ORDER BY app_id, number

-- name: stated_by_app
-- Facts that a statement counts: those in the store, and those that left it for history.
SELECT app_id, sum(facts) FROM (
  SELECT app_id, count(*) AS facts FROM att_statement_fact GROUP BY app_id
  UNION ALL SELECT app_id, sum(facts) AS facts FROM att_sum_purged GROUP BY app_id
) AS stated GROUP BY app_id
