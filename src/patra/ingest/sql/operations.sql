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

-- name: plans_page
SELECT plan_id, provenance_code, endpoint_name, operation_code, plan_strategy, status_code, window_from, window_to,
  priority, next_slice_no - 1 AS slices, total_estimated, expected_requests, namespace_key, created_at, updated_at
FROM ing_plan
WHERE (:source = '' OR provenance_code = :source) AND (:endpoint = '' OR endpoint_name = :endpoint)
  AND (:operation = '' OR operation_code = :operation) AND (:status = '' OR status_code = :status)
ORDER BY created_at DESC, plan_id DESC LIMIT :limit

-- name: tasks_page
SELECT task_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code, status_code, priority, scheduled_at,
  window_from, window_to, lease_owner, leased_until, lease_count, reason_code, started_at, finished_at, created_at
FROM ing_task
WHERE (:source = '' OR provenance_code = :source) AND (:endpoint = '' OR endpoint_name = :endpoint)
  AND (:operation = '' OR operation_code = :operation) AND (:status = '' OR status_code = :status)
  AND (:plan_id = '' OR plan_id = :plan_id)
ORDER BY task_id LIMIT :limit

-- name: queue_snapshot
SELECT provenance_code, endpoint_name, operation_code, status_code, count(*) AS tasks, min(scheduled_at) AS earliest
FROM ing_task
WHERE (:source = '' OR provenance_code = :source) AND (:operation = '' OR operation_code = :operation)
GROUP BY provenance_code, endpoint_name, operation_code, status_code
ORDER BY provenance_code, endpoint_name, operation_code, status_code

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

-- name: refused_instances
SELECT schedule_instance_id, provenance_code, endpoint_name, operation_code, outcome_code, record_remarks, triggered_at
FROM ing_schedule_instance WHERE outcome_code <> 'i_planned' AND (:source = '' OR provenance_code = :source)
ORDER BY triggered_at DESC LIMIT :limit
