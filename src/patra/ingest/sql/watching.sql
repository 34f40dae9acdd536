-- name: watch_flows
SELECT p.provenance_code, p.endpoint_name, p.operation_code, count(*),
  sum(json_extract(b.stats, '$.retryCount') + CASE WHEN b.error_level IN ('L1', 'L2') THEN 1 ELSE 0 END),
  sum(json_extract(b.stats, '$."429Count"')), sum(CASE WHEN b.error_level = 'L4' THEN 1 ELSE 0 END)
FROM ing_task_run_batch b JOIN ing_plan p ON p.plan_id = b.plan_id
WHERE b.created_at > :since
GROUP BY p.provenance_code, p.endpoint_name, p.operation_code
ORDER BY p.provenance_code, p.endpoint_name, p.operation_code

-- name: watch_cursors
SELECT c.provenance_code, c.operation_code, c.namespace_key, c.normalized_instant, c.plan_id
FROM ing_cursor c WHERE c.cursor_type_code = 'TIME' AND c.normalized_instant IS NOT NULL
ORDER BY c.provenance_code, c.operation_code, c.namespace_key

-- name: watch_queues
SELECT partition_key, count(*) FROM ing_task WHERE lease_owner IS NULL AND status_code = 'QUEUED'
GROUP BY partition_key ORDER BY partition_key

-- name: watch_queue_stats
SELECT partition_key, sum(samples), sum(total), sum(squares) FROM ing_queue_stat
WHERE day >= :since GROUP BY partition_key

-- name: watch_queue_add
-- rows: partition_key text, day int, total int, squares int
INSERT INTO ing_queue_stat (partition_key, day, samples, total, squares)
SELECT partition_key, day, 1, total, squares FROM rows WHERE true
ON CONFLICT (partition_key, day) DO UPDATE SET samples = ing_queue_stat.samples + 1,
  total = ing_queue_stat.total + excluded.total, squares = ing_queue_stat.squares + excluded.squares

-- name: watch_head
SELECT plan_id, scheduled_at, lease_count FROM ing_task
WHERE partition_key = :partition AND lease_owner IS NULL AND status_code = 'QUEUED'
ORDER BY priority, scheduled_at, task_id LIMIT 1

-- name: watch_begun
SELECT 1 WHERE EXISTS (SELECT 1 FROM ing_task WHERE plan_id = :plan_id AND status_code < 'QUEUED')
  OR EXISTS (SELECT 1 FROM ing_task WHERE plan_id = :plan_id AND status_code > 'QUEUED')

-- name: alerts_live
SELECT rule_code, subject, severity, state_code, value, detail, since, seen_at, fired_at, over_at, calm_since
FROM ing_alert WHERE state_code <> 'OVER' ORDER BY alert_key {for_update}

-- name: alerts_view
SELECT rule_code, subject, severity, state_code, value, detail, since, seen_at, fired_at, over_at, calm_since
FROM ing_alert WHERE state_code <> 'OVER' OR over_at > :since ORDER BY state_code, since DESC, alert_key

-- name: alerts_write
-- rows: alert_key text, rule_code text, subject text, severity text, state_code text, value real, detail text, since int, seen_at int, fired_at int, over_at int, calm_since int
INSERT INTO ing_alert (alert_key, rule_code, subject, severity, state_code, value, detail, since, seen_at, fired_at,
  over_at, calm_since)
SELECT alert_key, rule_code, subject, severity, state_code, value, detail, since, seen_at, fired_at, over_at, calm_since
FROM rows WHERE true
ON CONFLICT (alert_key) DO UPDATE SET severity = excluded.severity, state_code = excluded.state_code,
  value = excluded.value, detail = excluded.detail, since = excluded.since, seen_at = excluded.seen_at,
  fired_at = excluded.fired_at, over_at = excluded.over_at, calm_since = excluded.calm_since
