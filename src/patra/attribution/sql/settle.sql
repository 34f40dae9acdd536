-- name: settle_by_app
SELECT app_id, NULL, billable_type, count(*) FROM att_billable
WHERE fact_at >= :begin AND fact_at < :end AND status = 'committed' GROUP BY app_id, billable_type

-- name: settle_by_day
SELECT NULL, fact_at / :day, billable_type, count(*) FROM att_billable
WHERE fact_at >= :begin AND fact_at < :end AND status = 'committed' GROUP BY fact_at / :day, billable_type

-- name: settle_by_placement
SELECT b.app_id, o.placement, b.billable_type, count(*) FROM att_billable b
LEFT JOIN att_opportunity o ON o.key = b.opportunity
WHERE b.fact_at >= :begin AND b.fact_at < :end AND b.status = 'committed'
GROUP BY b.app_id, o.placement, b.billable_type
