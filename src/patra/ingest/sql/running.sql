-- name: records_seen
-- rows: provider_id text
SELECT r.provider_id, r.updated_at, r.record_version, r.expr_hash, r.content_hash FROM rows
JOIN ing_record r ON r.provider_id = rows.provider_id
WHERE r.provenance_code = :source AND r.endpoint_name = :endpoint {for_update}

-- name: records_insert
-- rows: provider_id text, updated_at int, record_version text, deleted int, content blob, content_hash text
INSERT INTO ing_record (provenance_code, endpoint_name, provider_id, updated_at, record_version, deleted, expr_hash,
  content, content_hash, task_id, run_id, batch_no, first_seen_at, changed_at, refresh_checked_at)
SELECT :source, :endpoint, provider_id, updated_at, record_version, deleted, :expr_hash,
  content, content_hash, :task_id, :run_id, :batch_no, :now, :now, :now FROM rows WHERE true
ON CONFLICT (provenance_code, endpoint_name, provider_id) DO NOTHING

-- name: records_update
-- rows: provider_id text, updated_at int, record_version text, deleted int, content blob, content_hash text, was_updated_at int
UPDATE ing_record SET updated_at = rows.updated_at, record_version = rows.record_version, deleted = rows.deleted,
  expr_hash = :expr_hash, content = rows.content, content_hash = rows.content_hash, task_id = :task_id,
  run_id = :run_id, batch_no = :batch_no, changed_at = :now, refresh_checked_at = :now
FROM rows
WHERE ing_record.provenance_code = :source AND ing_record.endpoint_name = :endpoint
  AND ing_record.provider_id = rows.provider_id AND ing_record.updated_at = rows.was_updated_at
RETURNING ing_record.provider_id

-- name: records_checked
-- rows: provider_id text
UPDATE ing_record SET refresh_checked_at = :now FROM rows
WHERE ing_record.provenance_code = :source AND ing_record.endpoint_name = :endpoint
  AND ing_record.provider_id = rows.provider_id

-- name: quarantine_add
-- rows: item_key text, provider_id text, reason_code text, field_path text, detail text, sample blob, sample_hash text
INSERT INTO ing_quarantine (provenance_code, endpoint_name, item_key, provider_id, status_code, reason_code, field_path,
  detail, sample, sample_hash, request_digest, operation_code, plan_id, slice_id, task_id, run_id, batch_no, expr_hash,
  first_seen_at, last_seen_at)
SELECT :source, :endpoint, item_key, provider_id, 'OPEN', reason_code, field_path, detail, sample, sample_hash,
  :request_digest, :operation, :plan_id, :slice_id, :task_id, :run_id, :batch_no, :expr_hash, :now, :now
FROM rows WHERE true
ON CONFLICT (provenance_code, endpoint_name, item_key) DO UPDATE SET
  status_code = CASE WHEN ing_quarantine.status_code = 'DISMISSED'
      AND ing_quarantine.sample_hash = excluded.sample_hash THEN 'DISMISSED' ELSE 'OPEN' END,
  reason_code = excluded.reason_code, field_path = excluded.field_path, detail = excluded.detail,
  sample = excluded.sample, sample_hash = excluded.sample_hash, request_digest = excluded.request_digest,
  run_id = excluded.run_id, batch_no = excluded.batch_no, task_id = excluded.task_id,
  seen_count = ing_quarantine.seen_count + 1, last_seen_at = excluded.last_seen_at
RETURNING provider_id, seen_count

-- name: quarantine_of_task
-- rows: item_key text
SELECT q.run_id FROM rows JOIN ing_quarantine q ON q.item_key = rows.item_key
WHERE q.provenance_code = :source AND q.endpoint_name = :endpoint AND q.task_id = :task_id

-- name: quarantine_dismiss
-- rows: item_key text
UPDATE ing_quarantine SET status_code = 'DISMISSED', last_seen_at = :now FROM rows
WHERE ing_quarantine.provenance_code = :source AND ing_quarantine.endpoint_name = :endpoint
  AND ing_quarantine.item_key = rows.item_key AND ing_quarantine.status_code = 'OPEN'

-- name: quarantine_resolve
-- rows: item_key text
UPDATE ing_quarantine SET status_code = 'RESOLVED', last_seen_at = :now FROM rows
WHERE ing_quarantine.provenance_code = :source AND ing_quarantine.endpoint_name = :endpoint
  AND ing_quarantine.item_key = rows.item_key AND ing_quarantine.status_code = 'OPEN'

-- name: credential_cfgs
SELECT credential_code, cfg FROM reg_prov_credential WHERE provenance_code = :source ORDER BY priority, credential_code

-- name: tasks_taken
-- rows: task_id text
SELECT t.task_id, t.schedule_instance_id, t.plan_id, t.slice_id, t.provenance_code, t.endpoint_name, t.operation_code,
  t.partition_key, t.expr_hash, t.namespace_key, t.window_from, t.window_to, t.status_code, t.lease_count,
  t.scheduled_at, t.priority, s.slice_spec, s.slice_signature_hash
FROM rows JOIN ing_task t ON t.task_id = rows.task_id JOIN ing_plan_slice s ON s.slice_id = t.slice_id

-- name: task_states
-- rows: task_id text
SELECT t.task_id, t.status_code FROM rows JOIN ing_task t ON t.task_id = rows.task_id

-- name: last_run
SELECT run_id, attempt_no, checkpoint FROM ing_task_run WHERE task_id = :task_id ORDER BY attempt_no DESC LIMIT 1

-- name: runs_open
-- rows: task_id text
SELECT r.run_id FROM rows JOIN ing_task_run r ON r.task_id = rows.task_id WHERE r.status_code = 'RUNNING'

-- name: runs_cancelled
-- cancelled tasks hold no lease: nothing of them runs out, and an executor that died does not end their runs
SELECT r.run_id FROM ing_task_run r JOIN ing_task t ON t.task_id = r.task_id
WHERE r.status_code = 'RUNNING' AND t.status_code = 'CANCELLED' ORDER BY r.run_id LIMIT :limit

-- name: run_progress
UPDATE ing_task_run SET checkpoint = :checkpoint, stats = :stats, updated_at = :now WHERE run_id = :run_id

-- name: batch_before
SELECT (SELECT count(*) FROM ing_task_run_batch b WHERE b.idempotent_key = :key) AS there,
  CASE WHEN EXISTS (SELECT 1 FROM ing_quarantine q
    WHERE q.provenance_code = :source AND q.endpoint_name = :endpoint AND q.status_code = 'OPEN') THEN 1 ELSE 0 END AS bad,
  CASE WHEN EXISTS (SELECT 1 FROM ing_topic_selection t WHERE t.selection_key = :selection) THEN 1 ELSE 0 END AS topics

-- name: topic_records
-- rows: provider_id text
INSERT INTO ing_topic_record (topic, provenance_code, endpoint_name, provider_id)
SELECT t.topic, :source, :endpoint, rows.provider_id FROM rows CROSS JOIN ing_topic_selection t
WHERE t.selection_key = :selection ORDER BY t.topic, rows.provider_id
ON CONFLICT (topic, provenance_code, endpoint_name, provider_id) DO NOTHING

-- name: note_identifiers
-- rows: identifier text, provider_id text
INSERT INTO ing_record_identifier (identifier, provenance_code, endpoint_name, provider_id)
SELECT rows.identifier, :source, :endpoint, rows.provider_id FROM rows WHERE true
ON CONFLICT (identifier, provenance_code, endpoint_name, provider_id) DO NOTHING

-- name: task_due
UPDATE ing_task SET scheduled_at = :due WHERE task_id = :task_id

-- name: cursor_observe
UPDATE ing_cursor SET observed_max_value = :observed
WHERE provenance_code = :source AND operation_code = :operation AND cursor_key = :key
  AND namespace_scope_code = :scope AND namespace_key = :namespace

-- name: cursor_observed_before
SELECT max(replace(observed_max_value, 'Z', '')) FROM ing_cursor_event
WHERE provenance_code = :source AND operation_code = :operation AND namespace_scope_code = :scope
  AND namespace_key = :namespace AND cursor_key = :key AND cursor_type_code = 'TIME'

-- name: cursor_first_lock
-- one writer: nobody else is between reading that there is no cursor and writing it
SELECT :namespace

-- name: cursor_for_update
SELECT cursor_value, normalized_instant, observed_max_value FROM ing_cursor
WHERE provenance_code = :source AND operation_code = :operation AND cursor_key = :key
  AND namespace_scope_code = :scope AND namespace_key = :namespace {for_update}

-- name: cursor_value
SELECT cursor_value, normalized_instant, observed_max_value FROM ing_cursor
WHERE provenance_code = :source AND operation_code = :operation AND cursor_key = :key
  AND namespace_scope_code = :scope AND namespace_key = :namespace

-- name: cursor_base
SELECT (SELECT window_from FROM ing_task WHERE namespace_key = :namespace AND window_to IS NOT NULL
    AND provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation
  ORDER BY window_from LIMIT 1),
  (SELECT window_to FROM ing_task WHERE namespace_key = :namespace AND window_to IS NOT NULL
    AND provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation
  ORDER BY window_to DESC LIMIT 1)

-- name: widest_window
SELECT window_to - window_from FROM ing_task WHERE namespace_key = :namespace AND window_to IS NOT NULL
ORDER BY window_to - window_from DESC LIMIT 1

-- name: windows_done
-- from the earliest that may touch the watermark on
SELECT t.window_from, t.window_to FROM ing_task t
WHERE t.namespace_key = :namespace AND t.window_to IS NOT NULL AND t.window_from > :low
  AND t.window_to > :present AND t.window_to > t.window_from
  AND t.provenance_code = :source AND t.endpoint_name = :endpoint AND t.operation_code = :operation
  AND (t.status_code = 'SUCCEEDED' OR (t.status_code = 'PARTIAL' AND NOT EXISTS (
    SELECT 1 FROM ing_reslice_request q WHERE q.task_id = t.task_id AND q.status_code = 'OPEN')))
ORDER BY t.window_from, t.window_to DESC LIMIT :limit

-- name: windows_done_within
SELECT t.window_from, t.window_to FROM ing_task t
WHERE t.namespace_key = :namespace AND t.window_to IS NOT NULL AND t.window_from >= :low AND t.window_from < :until
  AND t.window_to > :since AND t.window_to > t.window_from
  AND t.provenance_code = :source AND t.endpoint_name = :endpoint AND t.operation_code = :operation
  AND (t.status_code = 'SUCCEEDED' OR (t.status_code = 'PARTIAL' AND NOT EXISTS (
    SELECT 1 FROM ing_reslice_request q WHERE q.task_id = t.task_id AND q.status_code = 'OPEN')))

-- name: windows_done_backward
SELECT t.window_from, t.window_to FROM ing_task t
WHERE t.namespace_key = :namespace AND t.window_to IS NOT NULL AND t.window_to < :low
  AND t.window_from < :present AND t.window_to > t.window_from
  AND t.provenance_code = :source AND t.endpoint_name = :endpoint AND t.operation_code = :operation
  AND (t.status_code = 'SUCCEEDED' OR (t.status_code = 'PARTIAL' AND NOT EXISTS (
    SELECT 1 FROM ing_reslice_request q WHERE q.task_id = t.task_id AND q.status_code = 'OPEN')))
ORDER BY t.window_to DESC, t.window_from LIMIT :limit

-- name: cursor_event_add
-- rows: provenance_code text, operation_code text, cursor_key text, namespace_scope_code text, namespace_key text, cursor_type_code text, direction_code text, prev_value text, new_value text, prev_instant int, new_instant int, observed_max_value text, window_from int, window_to int, reason_code text, schedule_instance_id text, plan_id text, slice_id text, task_id text, run_id text, batch_no int, expr_hash text, idempotent_key text, record_remarks text, event_time int
INSERT INTO ing_cursor_event (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
  cursor_type_code, direction_code, prev_value, new_value, prev_instant, new_instant, observed_max_value, window_from,
  window_to, reason_code, schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_no, expr_hash,
  idempotent_key, record_remarks, event_time)
SELECT provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, cursor_type_code,
  direction_code, prev_value, new_value, prev_instant, new_instant, observed_max_value, window_from, window_to,
  reason_code, schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_no, expr_hash, idempotent_key,
  record_remarks, event_time
FROM rows WHERE true ON CONFLICT (idempotent_key) DO NOTHING

-- name: cursor_set
-- rows: provenance_code text, operation_code text, cursor_key text, namespace_scope_code text, namespace_key text, cursor_type_code text, cursor_value text, normalized_instant int, normalized_numeric int, observed_max_value text, schedule_instance_id text, plan_id text, slice_id text, task_id text, run_id text, batch_no int, expr_hash text, created_at int, updated_at int
INSERT INTO ing_cursor (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
  cursor_type_code, cursor_value, normalized_instant, normalized_numeric, observed_max_value, schedule_instance_id,
  plan_id, slice_id, task_id, run_id, batch_no, expr_hash, created_at, updated_at)
SELECT provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, cursor_type_code,
  cursor_value, normalized_instant, normalized_numeric, observed_max_value, schedule_instance_id, plan_id, slice_id,
  task_id, run_id, batch_no, expr_hash, created_at, updated_at
FROM rows WHERE true
ON CONFLICT (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key) DO UPDATE SET
  cursor_value = excluded.cursor_value, normalized_instant = excluded.normalized_instant,
  normalized_numeric = excluded.normalized_numeric,
  observed_max_value = excluded.observed_max_value,
  schedule_instance_id = excluded.schedule_instance_id, plan_id = excluded.plan_id, slice_id = excluded.slice_id,
  task_id = excluded.task_id, run_id = excluded.run_id, batch_no = excluded.batch_no, expr_hash = excluded.expr_hash,
  version = ing_cursor.version + 1, updated_at = excluded.updated_at

-- name: quota_consume
-- rows: rate_key text, period_code text, period_start int, consumed int, updated_at int
INSERT INTO ing_quota (rate_key, period_code, period_start, reserved, consumed, updated_at)
SELECT rate_key, period_code, period_start, 0, consumed, updated_at FROM rows WHERE true
ON CONFLICT (rate_key, period_code, period_start)
DO UPDATE SET consumed = ing_quota.consumed + excluded.consumed, updated_at = excluded.updated_at

-- name: cooldown_of
SELECT cooldown_until FROM ing_cooldown WHERE rate_key = :rate_key

-- name: cooldown_keep
-- rows: rate_key text, cooldown_until int, updated_at int
INSERT INTO ing_cooldown (rate_key, cooldown_until, updated_at)
SELECT rate_key, cooldown_until, updated_at FROM rows WHERE true
ON CONFLICT (rate_key) DO UPDATE SET updated_at = excluded.updated_at,
  cooldown_until = CASE WHEN ing_cooldown.cooldown_until > excluded.cooldown_until
    THEN ing_cooldown.cooldown_until ELSE excluded.cooldown_until END

-- name: body_keep
-- rows: body_hash text, content blob, size int, kept_at int
INSERT INTO ing_body (body_hash, content, size, kept_at) SELECT body_hash, content, size, kept_at FROM rows WHERE true
ON CONFLICT (body_hash) DO UPDATE SET kept_at = excluded.kept_at

-- name: list_keys_keep
-- rows: task_id text, page int, record_keys blob, nameless_keys blob
INSERT INTO ing_list_keys (task_id, page, record_keys, nameless_keys)
SELECT task_id, page, record_keys, nameless_keys FROM rows WHERE true
ON CONFLICT (task_id, page) DO UPDATE SET record_keys = excluded.record_keys, nameless_keys = excluded.nameless_keys

-- name: list_keys_before
SELECT record_keys, nameless_keys FROM ing_list_keys WHERE task_id = :task_id AND page < :page ORDER BY page

-- name: list_keys_forget
DELETE FROM ing_list_keys WHERE task_id = :task_id

-- name: partition_held
SELECT count(*) FROM ing_task WHERE partition_key = :partition AND lease_owner IS NOT NULL

-- name: work_waits
SELECT CASE WHEN EXISTS (
    SELECT 1 FROM ing_task t
    WHERE t.lease_owner IS NULL AND t.status_code = 'QUEUED' AND t.scheduled_at <= :now AND NOT EXISTS (
      SELECT 1 FROM ing_halt h
      WHERE h.provenance_code = t.provenance_code AND h.endpoint_name IN ('', t.endpoint_name)))
  OR (SELECT min(t.leased_until) FROM ing_task t WHERE t.lease_owner IS NOT NULL) < :now
  OR EXISTS (SELECT 1 FROM ing_task_run r JOIN ing_task t ON t.task_id = r.task_id
    WHERE r.status_code = 'RUNNING' AND t.status_code = 'CANCELLED')
  THEN 1 ELSE 0 END

-- name: own_plans
SELECT p.plan_id FROM ing_plan p
WHERE p.namespace_key = :namespace AND p.provenance_code = :source AND p.endpoint_name = :endpoint
  AND p.operation_code = :operation AND EXISTS (
    SELECT 1 FROM ing_task t WHERE t.plan_id = p.plan_id AND t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING'))
ORDER BY p.created_at DESC LIMIT 100

-- name: own_counts
-- rows: plan_id text
SELECT t.status_code, count(*), min(t.scheduled_at), min(t.reason_code), min(t.leased_until)
FROM rows JOIN ing_task t ON t.plan_id = rows.plan_id
GROUP BY t.status_code

-- name: own_counts_timed
SELECT status_code, count(*), min(scheduled_at), min(reason_code), min(leased_until) FROM ing_task
WHERE namespace_key = :namespace AND window_to > :since AND window_from < :until AND window_to IS NOT NULL
  AND provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation
GROUP BY status_code

-- name: own_left
-- rows: plan_id text
SELECT t.task_id, t.slice_id, t.status_code, t.reason_code, t.window_from, t.window_to, t.scheduled_at,
  (SELECT r.error FROM ing_task_run r WHERE r.task_id = t.task_id ORDER BY r.attempt_no DESC LIMIT 1) AS error
FROM rows JOIN ing_task t ON t.plan_id = rows.plan_id
WHERE t.status_code IN ('FAILED', 'QUEUED', 'DISPATCHED', 'EXECUTING', 'CANCELLED') ORDER BY t.task_id LIMIT 1000

-- name: own_left_timed
SELECT t.task_id, t.slice_id, t.status_code, t.reason_code, t.window_from, t.window_to, t.scheduled_at,
  (SELECT r.error FROM ing_task_run r WHERE r.task_id = t.task_id ORDER BY r.attempt_no DESC LIMIT 1) AS error
FROM ing_task t
WHERE t.namespace_key = :namespace AND t.window_to > :since AND t.window_from < :until AND t.window_to IS NOT NULL
  AND t.provenance_code = :source AND t.endpoint_name = :endpoint AND t.operation_code = :operation
  AND t.status_code IN ('FAILED', 'QUEUED', 'DISPATCHED', 'EXECUTING', 'CANCELLED')
ORDER BY t.window_from, t.task_id LIMIT 1000

-- name: blackbox_batch
SELECT b.*, s.slice_signature_hash, s.slice_spec, p.spec_fingerprint, p.expr_proto_hash
FROM ing_task_run_batch b JOIN ing_plan_slice s ON s.slice_id = b.slice_id JOIN ing_plan p ON p.plan_id = b.plan_id
WHERE b.run_id = :run_id AND b.batch_no = :batch_no

-- name: body_get
SELECT content, kept_at FROM ing_body WHERE body_hash = :body_hash

-- name: replay_context
SELECT p.expr_proto_snapshot, p.spec_fingerprint FROM ing_plan p WHERE p.plan_id = :plan_id

-- name: records_known
-- rows: provider_id text
SELECT r.provider_id, r.updated_at, r.record_version, r.expr_hash, r.content_hash FROM rows
JOIN ing_record r ON r.provider_id = rows.provider_id
WHERE r.provenance_code = :source AND r.endpoint_name = :endpoint

-- name: records_of_batch
-- rows: provider_id text
SELECT r.provider_id, r.updated_at, r.record_version, r.content_hash FROM rows
JOIN ing_record r ON r.provider_id = rows.provider_id
WHERE r.provenance_code = :source AND r.endpoint_name = :endpoint AND r.run_id = :run_id AND r.batch_no = :batch_no

-- name: records_take_out
-- rows: provider_id text
DELETE FROM ing_record WHERE provenance_code = :source AND endpoint_name = :endpoint
  AND run_id = :run_id AND batch_no = :batch_no AND provider_id IN (SELECT provider_id FROM rows)

-- name: blackbox_events
SELECT * FROM ing_cursor_event WHERE run_id = :run_id AND batch_no = :batch_no ORDER BY event_id
