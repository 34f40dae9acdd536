-- name: next_fact_hour
SELECT min(fact_hour) FROM att_billable WHERE fact_hour >= :first AND fact_hour <= :last

-- name: first_fact_between
SELECT min(f.fact_at) FROM att_settled f
WHERE f.fact_hour >= :first AND f.fact_hour <= :last AND f.fact_at >= :begin AND f.fact_at < :end AND f.app_id = :app_id

-- name: facts_of_hour
SELECT f.decision_id, f.app_id, f.billable_type, f.opportunity, f.fact_at, f.closure, o.placement
FROM att_settled f LEFT JOIN att_opportunity o ON o.key = f.opportunity
WHERE f.fact_hour = :hour AND f.fact_at >= :begin AND f.fact_at < :end AND (:app_id = '' OR f.app_id = :app_id)
ORDER BY f.decision_id

-- name: impressions_of_closures
-- rows: closure blob
-- SQLite: by the tree, and of those that it has not reached by looking them through.
SELECT k.closure, k.decision_id FROM rows JOIN att_billing_key k ON k.closure = rows.closure
WHERE k.billable_type = 'billable_impression'
UNION ALL
SELECT b.closure, b.decision_id FROM att_billable b JOIN rows ON rows.closure = b.closure
WHERE b.decision_id > (SELECT value FROM att_mark WHERE name = 'billing_keyed')
  AND b.billable_type = 'billable_impression'

-- name: bodies_of_closures
-- rows: closure blob
SELECT c.key, c.body FROM rows JOIN att_closure_key k ON k.key = rows.closure JOIN att_closure c ON c.number = k.number

-- name: undelivered_between
SELECT count(*) FROM att_billable
WHERE fact_hour >= :first AND fact_hour <= :last AND fact_at >= :begin AND fact_at < :end
  AND app_id = :app_id AND status = 'new'

-- name: add_rate
INSERT INTO att_rate (app_id, placement, creative, billable_type, currency, price_micros, valid_from, valid_to, created_at)
VALUES (:app_id, :placement, :creative, :billable_type, :currency, :price_micros, :valid_from, :valid_to, :now)
RETURNING version

-- name: rates
SELECT version, app_id, placement, creative, billable_type, currency, price_micros, valid_from, valid_to FROM att_rate
ORDER BY version

-- name: add_statement
INSERT INTO att_statement (app_id, number, period, begin_at, end_at, closed_at, hash, body)
VALUES (:app_id, :number, :period, :begin, :end, :closed_at, :hash, :body)
ON CONFLICT DO NOTHING

-- name: add_statement_page
INSERT INTO att_statement_page (app_id, number, page, body) VALUES (:app_id, :number, :page, :body)

-- name: add_statement_facts
-- rows: decision_id int
INSERT INTO att_statement_fact (decision_id, app_id, number) SELECT decision_id, :app_id, :number FROM rows WHERE true

-- name: stated_facts
-- rows: decision_id int
SELECT s.decision_id FROM rows JOIN att_statement_fact s ON s.decision_id = rows.decision_id

-- name: statements
SELECT body FROM att_statement WHERE (:app_id = '' OR app_id = :app_id) ORDER BY app_id, number

-- name: statement
SELECT body FROM att_statement WHERE app_id = :app_id AND period = :period

-- name: statement_pages
SELECT body FROM att_statement_page WHERE app_id = :app_id AND number = :number ORDER BY page

-- name: statement_page
SELECT body FROM att_statement_page WHERE app_id = :app_id AND number = :number AND page = :page

-- name: statement_of_number
SELECT body FROM att_statement WHERE app_id = :app_id AND number = :number

-- name: statement_verified
SELECT 1 FROM att_statement_check c JOIN att_statement t ON t.app_id = c.app_id AND t.number = c.number
WHERE c.app_id = :app_id AND c.number = :number AND c.checker = :checker AND c.problems = 0 AND c.hash = t.hash

-- name: statements_to_check
SELECT t.app_id, t.number FROM att_statement t
WHERE NOT EXISTS (
  SELECT 1 FROM att_statement_check c
  WHERE c.app_id = t.app_id AND c.number = t.number AND c.checker = :checker AND c.hash = t.hash
    AND (c.problems = 0 OR c.checked_at > :before)
) ORDER BY t.closed_at, t.app_id, t.number LIMIT :limit

-- name: add_statement_check
INSERT INTO att_statement_check (app_id, number, hash, checker, problems, checked_at)
SELECT t.app_id, t.number, t.hash, :checker, :problems, :now FROM att_statement t
WHERE t.app_id = :app_id AND t.number = :number
ON CONFLICT (app_id, number) DO UPDATE SET hash = excluded.hash, checker = excluded.checker,
  problems = excluded.problems, checked_at = excluded.checked_at

-- name: closed_periods
SELECT period, begin_at, end_at FROM att_statement WHERE app_id = :app_id ORDER BY number

-- name: statement_of_key
SELECT body FROM att_statement WHERE hash = :hash OR (app_id = :app_id AND period = :period) LIMIT 2

-- name: statements_of_facts
-- rows: decision_id int
SELECT DISTINCT s.body FROM rows JOIN att_statement_fact f ON f.decision_id = rows.decision_id
JOIN att_statement s ON s.app_id = f.app_id AND s.number = f.number

-- name: periods_of_facts
-- rows: decision_id int
SELECT f.decision_id, s.period FROM rows JOIN att_statement_fact f ON f.decision_id = rows.decision_id
JOIN att_statement s ON s.app_id = f.app_id AND s.number = f.number
