-- name: joins_by_hash
-- For the rest of the transaction: taken for one row by statistics that are behind, a page would be walked for each placement.
SELECT set_config('enable_nestloop', 'off', true)

-- name: commits_under_way
-- Those that hold the lock of `enter`, which they take before they draw a number.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = 'att_log'::regclass::oid AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: wrongly_summed
SELECT b.app_id, b.fact_hour, b.billable_type, b.opportunity, o.placement, b.decision_id
FROM att_lost_impression l CROSS JOIN LATERAL (
  SELECT * FROM att_billable e WHERE e.closure = l.closure AND e.billable_type = 'billable_click' OFFSET 0
) b LEFT JOIN att_opportunity o ON o.key = b.opportunity
WHERE b.decision_id <= :mark AND b.status = 'committed' AND b.fact_hour + 0 >= :first AND b.fact_hour + 0 < :last

-- name: uncounted_clicks
SELECT count(*) FROM att_lost_impression l CROSS JOIN LATERAL (
  SELECT * FROM att_billable e WHERE e.closure = l.closure AND e.billable_type = 'billable_click' OFFSET 0
) b
WHERE b.status = 'committed' AND b.fact_at >= :begin AND b.fact_at < :end
