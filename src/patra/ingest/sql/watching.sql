-- name: watch_flows
SELECT b.provenance_code, b.endpoint_name, b.operation_code, b.created_at / :width, count(*),
  sum(json_extract(b.stats, '$.retryCount') + CASE WHEN b.error_level IN ('L1', 'L2') THEN 1 ELSE 0 END),
  sum(json_extract(b.stats, '$."429Count"')), sum(CASE WHEN b.error_level = 'L4' THEN 1 ELSE 0 END)
FROM ing_task_run_batch b
WHERE b.created_at >= :since AND b.provenance_code IS NOT NULL
GROUP BY b.provenance_code, b.endpoint_name, b.operation_code, b.created_at / :width

-- name: watch_cursors
SELECT c.provenance_code, c.operation_code, c.namespace_key, c.normalized_instant, c.plan_id
FROM ing_cursor c WHERE c.cursor_type_code = 'TIME' AND c.normalized_instant IS NOT NULL
ORDER BY c.provenance_code, c.operation_code, c.namespace_key

-- name: watch_key_cursors
-- HARVEST by key: the mark says nothing of time; the last list that was read to its end does.
SELECT c.provenance_code, c.operation_code, c.namespace_key, max(t.finished_at), c.plan_id
FROM ing_cursor c JOIN ing_task o ON o.task_id = c.task_id
JOIN ing_task t ON t.partition_key = o.partition_key AND t.status_code = 'SUCCEEDED'
  AND t.namespace_key = c.namespace_key AND t.finished_at IS NOT NULL
WHERE c.cursor_type_code = 'ID' AND c.operation_code = 'HARVEST'
GROUP BY c.provenance_code, c.operation_code, c.namespace_key, c.plan_id
ORDER BY c.provenance_code, c.operation_code, c.namespace_key

-- name: watch_failed
SELECT t.task_id, t.provenance_code, t.endpoint_name, t.operation_code, t.namespace_key, t.window_from, t.window_to,
  t.reason_code, coalesce(l.missing, 0) AS missing
FROM ing_task t LEFT JOIN ing_window_ledger l ON l.task_id = t.task_id AND l.leg_code = 'LIST'
WHERE t.status_code = 'FAILED' ORDER BY t.task_id DESC LIMIT :limit

-- name: watch_failed_plans
-- Until a later plan of the same work reaches as far. Their windows are planned again, whatever became of their tasks.
SELECT p.plan_id, p.provenance_code, p.endpoint_name, p.operation_code, p.namespace_key
FROM ing_plan p
WHERE p.status_code = 'FAILED' AND NOT EXISTS (SELECT 1 FROM ing_plan n
  WHERE n.namespace_key = p.namespace_key AND n.provenance_code = p.provenance_code
    AND n.endpoint_name = p.endpoint_name AND n.operation_code = p.operation_code AND n.plan_id <> p.plan_id
    AND n.created_at >= p.created_at AND n.status_code NOT IN ('FAILED', 'CANCELLED')
    AND (p.window_to IS NULL OR (n.window_from < p.window_to AND n.window_to >= p.window_to)))
ORDER BY p.plan_id DESC LIMIT :limit

-- name: watch_ended
SELECT provenance_code, endpoint_name, operation_code, count(*),
  sum(CASE WHEN status_code = 'FAILED' THEN 1 ELSE 0 END)
FROM ing_task_run WHERE finished_at > :since AND (status_code = 'SUCCEEDED' OR status_code = 'FAILED')
GROUP BY provenance_code, endpoint_name, operation_code ORDER BY provenance_code, endpoint_name, operation_code

-- name: watch_under_way
SELECT window_from, window_to FROM ing_task
WHERE namespace_key = :namespace AND provenance_code = :source AND endpoint_name = :endpoint
  AND operation_code = :operation AND status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
  AND window_from < :until AND window_to > :since

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
