-- name: halt
-- rows: provenance_code text, endpoint_name text, kind_code text, reason_code text, detail text, halted_by text, halted_at int
INSERT INTO ing_halt (provenance_code, endpoint_name, kind_code, reason_code, detail, halted_by, halted_at)
SELECT provenance_code, endpoint_name, kind_code, reason_code, detail, halted_by, halted_at FROM rows WHERE true
ON CONFLICT (provenance_code, endpoint_name, kind_code) DO NOTHING
RETURNING provenance_code

-- name: unhalt
DELETE FROM ing_halt WHERE provenance_code = :source AND endpoint_name = :endpoint AND kind_code = :kind

-- name: known_endpoint
SELECT 1 FROM reg_prov_endpoint_def WHERE provenance_code = :source AND (:endpoint = '' OR endpoint_name = :endpoint)
LIMIT 1

-- name: live_slices
SELECT slice_id, status_code FROM ing_plan_slice
WHERE plan_id = :plan_id AND status_code IN ('PENDING', 'READY') ORDER BY slice_id LIMIT :limit

-- name: live_tasks_of_plan
SELECT task_id, status_code FROM ing_task
WHERE plan_id = :plan_id AND status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING') ORDER BY task_id LIMIT :limit

-- name: live_tasks_of_slice
SELECT task_id, status_code FROM ing_task
WHERE plan_id = :plan_id AND slice_id = :slice_id AND status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')

-- name: slice_state
SELECT plan_id, status_code FROM ing_plan_slice WHERE slice_id = :slice_id

-- name: task_state
SELECT plan_id, slice_id, status_code FROM ing_task WHERE task_id = :task_id

-- name: due_now
UPDATE ing_task SET scheduled_at = :now, finished_at = NULL, reason_code = NULL, updated_at = :now
WHERE task_id = :task_id

-- name: all_due_now
-- rows: task_id text
UPDATE ing_task SET scheduled_at = :now, finished_at = NULL, reason_code = NULL, updated_at = :now FROM rows
WHERE ing_task.task_id = rows.task_id

-- name: plans_given_up
-- rows: plan_id text
SELECT p.plan_id FROM rows JOIN ing_plan p ON p.plan_id = rows.plan_id
WHERE p.status_code = 'CANCELLED' OR p.status_code = 'FAILED'

-- name: queue_snapshot
SELECT c.partition_key, c.status_code, CAST(sum(c.tasks) AS BIGINT) AS tasks, CASE
    WHEN c.status_code = 'QUEUED' OR c.status_code = 'DISPATCHED' OR c.status_code = 'EXECUTING' THEN
      (SELECT min(t.scheduled_at) FROM ing_task t WHERE t.partition_key = c.partition_key
        AND t.status_code = c.status_code
        AND (t.status_code = 'QUEUED' OR t.status_code = 'DISPATCHED' OR t.status_code = 'EXECUTING'))
    END AS earliest
FROM (SELECT partition_key, status_code, tasks FROM ing_task_count
  UNION ALL SELECT partition_key, status_code, tasks FROM ing_task_count_change) AS c
GROUP BY c.partition_key, c.status_code HAVING sum(c.tasks) > 0 ORDER BY c.partition_key, c.status_code

-- name: task_count_fold
WITH folded AS (DELETE FROM ing_task_count_change RETURNING partition_key, status_code, tasks)
INSERT INTO ing_task_count (partition_key, status_code, tasks)
SELECT partition_key, status_code, CAST(sum(tasks) AS BIGINT) FROM folded GROUP BY partition_key, status_code
ORDER BY partition_key, status_code
ON CONFLICT (partition_key, status_code) DO UPDATE SET tasks = ing_task_count.tasks + excluded.tasks

-- name: task_count_changes
SELECT count(*) FROM (SELECT 1 FROM ing_task_count_change LIMIT :limit) AS counted

-- name: partitions
SELECT DISTINCT partition_key FROM ing_task_count
UNION SELECT DISTINCT partition_key FROM ing_task_count_change ORDER BY partition_key

-- name: task_counts
SELECT status_code, count(*) FROM ing_task WHERE plan_id = :plan_id GROUP BY status_code ORDER BY status_code

-- name: slice_counts
SELECT status_code, count(*) FROM ing_plan_slice WHERE plan_id = :plan_id GROUP BY status_code ORDER BY status_code

-- name: slices_page
SELECT s.slice_id, s.slice_no, s.parent_slice_id, s.slice_signature_hash, s.expr_hash, s.slice_spec, s.status_code,
  t.task_id, t.status_code AS task_status, t.scheduled_at, t.window_from, t.window_to, t.reason_code
FROM ing_plan_slice s LEFT JOIN ing_task t ON t.plan_id = s.plan_id AND t.slice_id = s.slice_id
WHERE s.plan_id = :plan_id AND s.slice_id > :after ORDER BY s.slice_id LIMIT :limit

-- name: instance
SELECT * FROM ing_schedule_instance WHERE schedule_instance_id = :schedule_instance_id

-- name: error_top
SELECT provenance_code, endpoint_name, operation_code, error_level, reason_code, count(*) AS errors,
  max(created_at) AS last_at
FROM ing_task_run_batch
WHERE error_level IS NOT NULL AND created_at >= :since AND created_at < :until
  AND (:source = '' OR provenance_code = :source) AND (:operation = '' OR operation_code = :operation)
  AND (:level = '' OR error_level = :level)
GROUP BY provenance_code, endpoint_name, operation_code, error_level, reason_code
ORDER BY errors DESC, provenance_code, endpoint_name, operation_code, reason_code LIMIT :limit

-- name: lineage_runs
-- rows: task_id text
SELECT r.run_id, r.task_id, r.attempt_no, r.status_code, r.reason_code, r.started_at, r.finished_at
FROM rows JOIN ing_task_run r ON r.task_id = rows.task_id ORDER BY r.task_id, r.attempt_no

-- name: lineage_batches
-- rows: run_id text
SELECT b.run_id, b.batch_no, b.phase_code, b.status_code, b.error_level, b.reason_code, b.created_at
FROM rows JOIN ing_task_run_batch b ON b.run_id = rows.run_id WHERE b.batch_no <= :most ORDER BY b.run_id, b.batch_no
