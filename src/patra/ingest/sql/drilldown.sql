-- name: drill_task
SELECT t.task_id, t.plan_id, t.slice_id, t.provenance_code, t.endpoint_name, t.operation_code, t.namespace_key,
  t.status_code, t.priority, t.scheduled_at, t.window_from, t.window_to, t.lease_owner, t.leased_until, t.lease_count,
  t.reason_code, t.started_at, t.finished_at, t.created_at, t.schedule_instance_id
FROM ing_task t WHERE t.task_id = :task_id

-- name: drill_runs
SELECT run_id, task_id, plan_id, attempt_no, status_code, reason_code, error, lease_owner, checkpoint, stats,
  started_at, finished_at
FROM ing_task_run WHERE task_id = :task_id ORDER BY attempt_no DESC LIMIT :limit

-- name: drill_run
SELECT run_id, task_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code, attempt_no, status_code,
  reason_code, error, lease_owner, checkpoint, stats, started_at, finished_at
FROM ing_task_run WHERE run_id = :run_id

-- name: drill_batches
SELECT batch_no, phase_code, status_code, error_level, reason_code, error, page_no, stats, created_at
FROM ing_task_run_batch WHERE run_id = :run_id AND batch_no > :after ORDER BY batch_no LIMIT :limit

-- name: drill_windows
-- No window that begins before the end of the span ends later than the widest would: later ones are not walked.
SELECT task_id, status_code, reason_code, window_from, window_to FROM ing_task
WHERE namespace_key = :namespace AND window_to > :since AND window_to < :beyond AND window_from < :until
  AND window_to IS NOT NULL AND provenance_code = :source AND operation_code = :operation
ORDER BY window_to, task_id LIMIT :limit

-- name: drill_buckets
-- Windows by the part of the span in which they begin; of more than can be looked at, the latest.
SELECT bucket, status_code, count(*) AS windows, min(window_from) AS window_from, max(window_to) AS window_to,
  min(task_id) AS task_id
FROM (SELECT task_id, status_code, window_from, window_to,
    CASE WHEN window_from < :since THEN 0 ELSE (window_from - :since) / :width END AS bucket FROM ing_task
  WHERE namespace_key = :namespace AND window_to > :since AND window_to < :beyond AND window_from < :until
    AND window_to IS NOT NULL AND provenance_code = :source AND operation_code = :operation
  ORDER BY window_to DESC, task_id DESC LIMIT :limit) latest
GROUP BY bucket, status_code ORDER BY bucket

-- name: drill_series
-- Of the newest plans: a source that is planned every few minutes has hundreds of thousands of them.
SELECT namespace_key, operation_code, endpoint_name, max(created_at) FROM (
  SELECT namespace_key, operation_code, endpoint_name, created_at FROM ing_plan
  WHERE provenance_code = :source AND operation_code = :operation ORDER BY created_at DESC LIMIT :plans) newest
GROUP BY namespace_key, operation_code, endpoint_name ORDER BY 4 DESC LIMIT :limit
