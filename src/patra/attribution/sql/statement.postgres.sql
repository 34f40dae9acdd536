-- name: impressions_of_closures
-- rows: closure blob
SELECT b.closure, b.decision_id FROM rows JOIN att_billable b ON b.closure = rows.closure
WHERE b.billable_type = 'billable_impression'

-- name: bodies_of_closures
-- rows: closure blob
SELECT c.key, c.body FROM rows CROSS JOIN LATERAL (SELECT * FROM att_closure e WHERE e.key = rows.closure LIMIT 1) c
