-- name: watch_flows
-- With an end, too: of a span without one the planner takes a third of the table where it has no statistics, and scans it.
SELECT b.provenance_code, b.endpoint_name, b.operation_code, b.created_at / :width, count(*),
  sum(CAST(CAST(b.stats AS json) ->> 'retryCount' AS bigint) + CASE WHEN b.error_level IN ('L1', 'L2') THEN 1 ELSE 0 END),
  sum(CAST(CAST(b.stats AS json) ->> '429Count' AS bigint)), sum(CASE WHEN b.error_level = 'L4' THEN 1 ELSE 0 END)
FROM ing_task_run_batch b
WHERE b.created_at >= :since AND b.created_at < 9223372036854775807 AND b.provenance_code IS NOT NULL
GROUP BY b.provenance_code, b.endpoint_name, b.operation_code, b.created_at / :width
