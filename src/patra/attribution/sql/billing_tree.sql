-- name: billables_after
SELECT closure, billable_type, decision_id FROM att_billable WHERE decision_id > :after ORDER BY decision_id LIMIT :limit

-- name: billables_to_key
-- How many facts the next page has, how many of them have a key, and its last one.
SELECT count(*), count(closure), max(decision_id) FROM (
  SELECT closure, decision_id FROM att_billable WHERE decision_id > :after ORDER BY decision_id LIMIT :limit
) AS page

-- name: key_billables
-- In the order of the tree, the earliest of a key first; without a row of them in this process.
INSERT INTO att_billing_key (closure, billable_type, decision_id)
SELECT closure, billable_type, decision_id FROM att_billable
WHERE decision_id > :after AND decision_id <= :last AND closure IS NOT NULL ORDER BY closure, billable_type, decision_id
ON CONFLICT (closure, billable_type) DO NOTHING

-- name: keyed_elsewhere
-- rows: closure blob, billable_type text, decision_id int
SELECT rows.decision_id, k.decision_id FROM rows
JOIN att_billing_key k ON k.closure = rows.closure AND k.billable_type = rows.billable_type
WHERE k.decision_id <> rows.decision_id

-- name: note_billed_twice
-- rows: decision_id int, first_id int
INSERT INTO att_billed_twice (decision_id, first_id, found_at) SELECT decision_id, first_id, :now FROM rows WHERE true
ON CONFLICT (decision_id) DO NOTHING

-- name: count_billed_twice
SELECT count(*) FROM att_billed_twice

-- name: billed_twice_between
SELECT count(*) FROM att_billed_twice t CROSS JOIN att_billable b
WHERE b.decision_id = t.decision_id AND b.fact_at >= :begin AND b.fact_at < :end

-- name: billing_keys_astray
-- Only SQLite: entries of the tree that lead to no fact, or to one of another key.
SELECT k.closure FROM att_billing_key k LEFT JOIN att_billable b ON b.decision_id = k.decision_id
WHERE b.decision_id IS NULL OR b.closure <> k.closure OR b.billable_type <> k.billable_type LIMIT :limit

-- name: billables_unkeyed
-- Only SQLite: facts that the tree should have.
SELECT b.closure FROM att_billable b
LEFT JOIN att_billing_key k ON k.closure = b.closure AND k.billable_type = b.billable_type
WHERE b.closure IS NOT NULL AND k.closure IS NULL
  AND b.decision_id <= (SELECT value FROM att_mark WHERE name = 'billing_keyed') LIMIT :limit
