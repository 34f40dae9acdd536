-- name: story_instance
SELECT schedule_instance_id, trigger_key, scheduler_code, scheduler_job_id, trigger_type_code, provenance_code,
  endpoint_name, operation_code, outcome_code, record_remarks, spec_fingerprint, triggered_at
FROM ing_schedule_instance WHERE schedule_instance_id = :key
UNION
SELECT schedule_instance_id, trigger_key, scheduler_code, scheduler_job_id, trigger_type_code, provenance_code,
  endpoint_name, operation_code, outcome_code, record_remarks, spec_fingerprint, triggered_at
FROM ing_schedule_instance WHERE trigger_key = :key

-- name: story_plans_of_instance
SELECT plan_id FROM ing_plan WHERE schedule_instance_id = :key ORDER BY plan_id LIMIT :limit

-- name: story_plan
SELECT plan_id, schedule_instance_id, provenance_code, endpoint_name, operation_code, plan_strategy, window_from,
  window_to, namespace_scope_code, namespace_key, expr_proto_hash, spec_fingerprint, status_code, record_remarks, created_at
FROM ing_plan WHERE plan_id = :key

-- name: story_slice
SELECT slice_id, plan_id, parent_slice_id, slice_signature_hash, status_code, record_remarks, created_at
FROM ing_plan_slice WHERE slice_id = :key

-- name: story_task
SELECT task_id, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code, status_code,
  scheduled_at, namespace_key, window_from, window_to, lease_owner, leased_until, lease_count, reason_code, created_at
FROM ing_task WHERE task_id = :key

-- name: story_tasks_of_plan
SELECT task_id, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code, status_code,
  scheduled_at, namespace_key, window_from, window_to, lease_owner, leased_until, lease_count, reason_code, created_at
FROM ing_task WHERE task_id >= :first AND task_id < :last ORDER BY task_id LIMIT :limit

-- name: story_run
SELECT run_id, task_id, attempt_no, status_code, lease_owner, reason_code, error, started_at, finished_at
FROM ing_task_run WHERE run_id = :key

-- name: story_runs_of_task
SELECT run_id, task_id, attempt_no, status_code, lease_owner, reason_code, error, started_at, finished_at
FROM ing_task_run WHERE task_id = :key ORDER BY attempt_no LIMIT :limit

-- name: story_batches_of_run
SELECT batch_id, run_id, task_id, plan_id, batch_no, phase_code, status_code, page_no, page_offset, window_from, window_to,
  request_digest, response_digest, stats, body_hash, error_level, reason_code, error, created_at
FROM ing_task_run_batch WHERE run_id = :key AND batch_no >= :first AND batch_no <= :last ORDER BY batch_no LIMIT :limit

-- name: story_records
-- rows: provider_id text
-- By the key of the table, once for each endpoint that there is: no index of the id alone is needed.
SELECT r.provenance_code, r.endpoint_name, r.provider_id, r.updated_at, r.record_version, r.deleted, r.expr_hash,
  r.content_hash, r.task_id, r.run_id, r.batch_no, r.first_seen_at, r.changed_at
FROM rows
JOIN (SELECT DISTINCT provenance_code, endpoint_name FROM reg_prov_endpoint_def) d ON 1 = 1
JOIN ing_record r ON r.provenance_code = d.provenance_code AND r.endpoint_name = d.endpoint_name
  AND r.provider_id = rows.provider_id
ORDER BY r.provenance_code, r.endpoint_name LIMIT :limit

-- name: story_records_identified
-- rows: identifier text
SELECT r.provenance_code, r.endpoint_name, r.provider_id, r.updated_at, r.record_version, r.deleted, r.expr_hash,
  r.content_hash, r.task_id, r.run_id, r.batch_no, r.first_seen_at, r.changed_at
FROM rows
JOIN ing_record_identifier i ON i.identifier = rows.identifier
JOIN ing_record r ON r.provenance_code = i.provenance_code AND r.endpoint_name = i.endpoint_name
  AND r.provider_id = i.provider_id
ORDER BY r.provenance_code, r.endpoint_name, r.provider_id LIMIT :limit

-- name: story_identifiers
SELECT identifier FROM ing_record_identifier
WHERE provenance_code = :source AND endpoint_name = :endpoint AND provider_id = :id ORDER BY identifier

-- name: story_quarantine
-- rows: item_key text
SELECT q.provenance_code, q.endpoint_name, q.item_key, q.status_code, q.reason_code, q.field_path, q.detail,
  q.task_id, q.run_id, q.batch_no, q.seen_count, q.first_seen_at, q.last_seen_at
FROM rows
JOIN (SELECT DISTINCT provenance_code, endpoint_name FROM reg_prov_endpoint_def) d ON 1 = 1
JOIN ing_quarantine q ON q.provenance_code = d.provenance_code AND q.endpoint_name = d.endpoint_name
  AND q.item_key = rows.item_key
ORDER BY q.provenance_code, q.endpoint_name LIMIT :limit

-- name: story_signals
-- rows: provider_id text
SELECT s.provenance_code, s.endpoint_name, s.provider_id, s.reason_code, s.detail, s.raised_by, s.raised_at, s.plan_id
FROM rows
JOIN (SELECT DISTINCT provenance_code, endpoint_name FROM reg_prov_endpoint_def) d ON 1 = 1
JOIN ing_signal s ON s.provenance_code = d.provenance_code AND s.endpoint_name = d.endpoint_name
  AND s.provider_id = rows.provider_id
ORDER BY s.provenance_code, s.endpoint_name LIMIT :limit

-- name: story_cursor_events_of_run
SELECT * FROM ing_cursor_event WHERE run_id = :key AND batch_no >= :first AND batch_no <= :last
ORDER BY batch_no, event_id LIMIT :limit

-- name: story_cursors
SELECT * FROM ing_cursor WHERE namespace_key = :namespace AND (:source = '' OR provenance_code = :source)
  AND (:operation = '' OR operation_code = :operation)
ORDER BY provenance_code, operation_code, cursor_key, namespace_scope_code LIMIT :limit

-- name: story_cursor_events
SELECT * FROM ing_cursor_event WHERE provenance_code = :source AND operation_code = :operation
  AND namespace_scope_code = :scope AND namespace_key = :namespace AND cursor_key = :cursor_key
ORDER BY event_time DESC LIMIT :limit

-- name: story_relay_head
SELECT appended_at, due_at, attempt, reason FROM krn_outbox
WHERE channel = :channel AND group_key = :group_key AND status = 'pending' ORDER BY seq LIMIT 1
