-- name: clicks_of_impressions
-- rows: id int
SELECT i.decision_id, c.decision_id, c.status FROM rows JOIN att_billable i ON i.decision_id = rows.id
JOIN att_billable c ON c.closure = i.closure AND c.billable_type = 'billable_click'

-- name: settled_facts_to_export
SELECT b.decision_id, s.app_id, s.number FROM att_billable b
JOIN att_statement_fact s ON s.decision_id = b.decision_id
JOIN att_statement t ON t.app_id = s.app_id AND t.number = s.number
WHERE b.decision_id > :after AND b.decision_id <= :bound AND t.closed_at < :before
  AND NOT EXISTS (
    SELECT 1 FROM att_sum_pending p WHERE p.sums IN ('hour', 'placement') AND p.decision_id = b.decision_id)
ORDER BY b.decision_id LIMIT :limit

-- name: settled_facts_of_span
SELECT b.decision_id, b.fact_at, b.app_id, b.billable_type, o.placement, b.opportunity, s.number, t.period, b.closure,
  c.state, c.source, c.opened_at, c.body
FROM att_billable b JOIN att_statement_fact s ON s.decision_id = b.decision_id
JOIN att_statement t ON t.app_id = s.app_id AND t.number = s.number
LEFT JOIN att_opportunity o ON o.key = b.opportunity
LEFT JOIN att_closure c ON c.key = b.closure
WHERE b.decision_id >= :first AND b.decision_id <= :last AND t.closed_at < :cutoff
  AND NOT EXISTS (
    SELECT 1 FROM att_sum_pending p WHERE p.sums IN ('hour', 'placement') AND p.decision_id = b.decision_id)
ORDER BY b.decision_id

-- name: reduce_closures
-- An upsert finds them by their keys, where PostgreSQL would rather read the whole table for a join.
INSERT INTO att_closure (key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body)
SELECT c.key, c.app_id, c.state, c.source, c.opened_at, c.due_at, c.click, c.click_due, c.timeout_id, r.body
FROM (SELECT key, body FROM rows ORDER BY key) r
CROSS JOIN LATERAL (SELECT * FROM att_closure e WHERE e.key = r.key LIMIT 1) c
ON CONFLICT (key) DO UPDATE SET body = excluded.body WHERE att_closure.state <> 'open' AND att_closure.due_at IS NULL
