-- name: watch_flows
SELECT p.provenance_code, p.endpoint_name, p.operation_code, count(*),
  sum(CAST(CAST(b.stats AS json) ->> 'retryCount' AS bigint) + CASE WHEN b.error_level IN ('L1', 'L2') THEN 1 ELSE 0 END),
  sum(CAST(CAST(b.stats AS json) ->> '429Count' AS bigint)), sum(CASE WHEN b.error_level = 'L4' THEN 1 ELSE 0 END)
FROM ing_task_run_batch b JOIN ing_plan p ON p.plan_id = b.plan_id
WHERE b.created_at > :since
GROUP BY p.provenance_code, p.endpoint_name, p.operation_code
ORDER BY p.provenance_code, p.endpoint_name, p.operation_code
