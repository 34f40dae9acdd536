-- name: joins_by_hash
-- For the rest of the transaction: taken for one row by statistics that are behind, a page would be walked for each placement.
SELECT set_config('enable_nestloop', 'off', true)

-- name: placement_facts_to_sum
WITH page AS MATERIALIZED (
  SELECT b.fact_hour, b.app_id, b.billable_type, b.opportunity,
    (SELECT o.placement FROM att_opportunity o WHERE o.key = b.opportunity) AS placement
  FROM att_billable b WHERE b.decision_id > :after AND b.decision_id <= :bound AND b.status = 'committed'
), waiting AS MATERIALIZED (
  SELECT DISTINCT ON (key) key, placement FROM att_placement
  WHERE decision_id <= :complete AND key IN (SELECT opportunity FROM page WHERE placement IS NULL)
  ORDER BY key, decision_id
), placed AS (
  SELECT page.fact_hour, page.app_id, page.billable_type, page.opportunity,
    coalesce(page.placement, waiting.placement) AS placement
  FROM page LEFT JOIN waiting ON waiting.key = page.opportunity
)
SELECT fact_hour, app_id, billable_type, placement, CASE WHEN placement IS NULL THEN opportunity END, count(*)
FROM placed GROUP BY 1, 2, 3, 4, 5

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
