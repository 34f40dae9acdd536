-- name: take_turns
SELECT :name

-- name: last_key
SELECT normalized_numeric FROM ing_cursor
WHERE provenance_code = :source AND operation_code = 'HARVEST' AND cursor_key = :key
  AND namespace_scope_code = :scope AND namespace_key = :namespace AND cursor_type_code = 'ID'

-- name: watermark
SELECT normalized_instant FROM ing_cursor
WHERE provenance_code = :source AND operation_code = 'HARVEST' AND cursor_key = :key
  AND namespace_scope_code = :scope AND namespace_key = :namespace

-- name: earlier_watermarks
SELECT c.cursor_key, c.normalized_instant, i.trigger_params FROM ing_cursor c
JOIN ing_plan p ON p.plan_id = c.plan_id
JOIN ing_schedule_instance i ON i.schedule_instance_id = p.schedule_instance_id
WHERE c.provenance_code = :source AND c.operation_code = 'HARVEST' AND p.endpoint_name = :endpoint
  AND c.normalized_instant IS NOT NULL
  AND NOT (c.cursor_key = :key AND c.namespace_scope_code = :scope AND c.namespace_key = :namespace)
ORDER BY c.updated_at DESC, c.cursor_key, c.namespace_key LIMIT :limit

-- name: mean_window
SELECT avg(window_to - window_from) FROM ing_task WHERE plan_id = :plan_id AND window_from IS NOT NULL

-- name: covered
-- Tasks that have done or will do a window, and plans that are still to cut it: one statement, so that what moves from
-- the one to the other while it runs is seen once.
SELECT window_from, window_to, '' AS progress FROM ing_task
WHERE namespace_key = :namespace AND window_to > :since AND window_from < :until AND plan_id <> :except_plan
  AND provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation
  AND status_code IN ('QUEUED','DISPATCHED','EXECUTING','SUCCEEDED','PARTIAL')
UNION ALL
SELECT window_from, window_to, progress FROM ing_plan
WHERE namespace_key = :namespace AND plan_strategy = 'TIME' AND plan_id <> :except_plan
  AND provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation
  AND status_code IN ('DRAFT','SLICING','PARTIAL')

-- name: generation
SELECT count(*) FROM ing_plan WHERE namespace_key = :namespace
  AND provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation

-- name: under_way
SELECT 1 FROM ing_plan p WHERE p.namespace_key = :namespace
  AND p.provenance_code = :source AND p.endpoint_name = :endpoint AND p.operation_code = :operation
  AND (p.status_code IN ('DRAFT','SLICING','PARTIAL') OR EXISTS (
    SELECT 1 FROM ing_task t WHERE t.plan_id = p.plan_id AND t.status_code IN ('QUEUED','DISPATCHED','EXECUTING')))
LIMIT 1

-- name: queued
SELECT count(*) FROM (
  SELECT 1 FROM ing_task
  WHERE partition_key = :partition AND lease_owner IS NULL AND status_code = 'QUEUED' LIMIT :limit
) AS counted

-- name: halts
SELECT provenance_code, endpoint_name, kind_code, reason_code, detail, halted_by, halted_at FROM ing_halt
ORDER BY provenance_code, endpoint_name, kind_code

-- name: halts_of
SELECT provenance_code, endpoint_name, kind_code, reason_code, detail, halted_by, halted_at FROM ing_halt
WHERE provenance_code = :source AND endpoint_name IN ('', :endpoint)
ORDER BY kind_code, endpoint_name

-- name: window_stats
SELECT window_from, window_to, total FROM ing_window_stat
WHERE selection_key = :selection AND window_to > :since AND window_from < :until
ORDER BY reported_at DESC LIMIT :limit

-- name: window_stats_any
SELECT window_from, window_to, total FROM ing_window_stat
WHERE selection_key = :selection ORDER BY reported_at DESC LIMIT :limit

-- name: pages_done
SELECT p.window_from, p.window_to FROM ing_plan p
WHERE p.plan_id = :plan_id AND p.progress = 'end' AND p.window_from IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM ing_task t WHERE t.plan_id = p.plan_id AND t.task_id <> :task_id
    AND t.status_code NOT IN ('SUCCEEDED', 'PARTIAL'))
  AND NOT EXISTS (SELECT 1 FROM ing_task t JOIN ing_reslice_request q ON q.task_id = t.task_id
    WHERE t.plan_id = p.plan_id AND q.status_code <> 'DONE')

-- name: report_total
-- rows: selection_key text, window_from int, window_to int, total int, reported_at int
INSERT INTO ing_window_stat (selection_key, window_from, window_to, total, reported_at)
SELECT selection_key, window_from, window_to, total, reported_at FROM rows WHERE true
ON CONFLICT (selection_key, window_from, window_to)
DO UPDATE SET total = excluded.total, reported_at = excluded.reported_at
WHERE excluded.reported_at >= ing_window_stat.reported_at

-- name: quota_taken
SELECT period_code, period_start, reserved, consumed FROM ing_quota
WHERE rate_key = :rate_key AND period_start >= :since

-- name: quota_reserve
-- rows: rate_key text, period_code text, period_start int, reserved int, updated_at int
INSERT INTO ing_quota (rate_key, period_code, period_start, reserved, consumed, updated_at)
SELECT rate_key, period_code, period_start, reserved, 0, updated_at FROM rows WHERE true
ON CONFLICT (rate_key, period_code, period_start)
DO UPDATE SET reserved = ing_quota.reserved + excluded.reserved, updated_at = excluded.updated_at

-- name: quota_release
-- rows: rate_key text, period_code text, period_start int, requests int, updated_at int
UPDATE ing_quota SET updated_at = rows.updated_at,
  reserved = CASE WHEN ing_quota.reserved > rows.requests THEN ing_quota.reserved - rows.requests ELSE 0 END
FROM rows WHERE ing_quota.rate_key = rows.rate_key AND ing_quota.period_code = rows.period_code
  AND ing_quota.period_start = rows.period_start

-- name: reserved_by
-- rows: task_id text
SELECT t.plan_id, t.scheduled_at, s.slice_spec, p.expr_proto_snapshot
FROM rows JOIN ing_task t ON t.task_id = rows.task_id JOIN ing_plan_slice s ON s.slice_id = t.slice_id
JOIN ing_plan p ON p.plan_id = t.plan_id

-- name: unfollow_topic
DELETE FROM ing_topic_selection WHERE selection_key = :selection AND topic = :topic

-- name: instance_of_tick
SELECT i.schedule_instance_id, i.outcome_code, i.record_remarks, p.plan_id
FROM ing_schedule_instance i LEFT JOIN ing_plan p ON p.schedule_instance_id = i.schedule_instance_id
WHERE i.scheduler_code = :scheduler AND i.scheduler_job_id = :job AND i.scheduler_log_id = :log
  AND i.endpoint_name = :endpoint AND i.operation_code = :operation AND i.trigger_params = :said
ORDER BY i.created_at LIMIT 1

-- name: instance_of_key
SELECT i.schedule_instance_id, i.outcome_code, i.record_remarks, p.plan_id
FROM ing_schedule_instance i LEFT JOIN ing_plan p ON p.schedule_instance_id = i.schedule_instance_id
WHERE i.trigger_key = :key

-- name: write_instance
-- rows: schedule_instance_id text, trigger_key text, scheduler_code text, scheduler_job_id text, scheduler_log_id text, trigger_type_code text, provenance_code text, endpoint_name text, operation_code text, trigger_params text, expr_proto_hash text, spec_fingerprint text, outcome_code text, record_remarks text, triggered_at int, created_at int, updated_at int
INSERT INTO ing_schedule_instance (schedule_instance_id, trigger_key, scheduler_code, scheduler_job_id,
  scheduler_log_id, trigger_type_code, provenance_code, endpoint_name, operation_code, trigger_params, expr_proto_hash,
  spec_fingerprint, outcome_code, record_remarks, triggered_at, created_at, updated_at)
SELECT schedule_instance_id, trigger_key, scheduler_code, scheduler_job_id, scheduler_log_id, trigger_type_code,
  provenance_code, endpoint_name, operation_code, trigger_params, expr_proto_hash, spec_fingerprint, outcome_code,
  record_remarks, triggered_at, created_at, updated_at
FROM rows WHERE true
ON CONFLICT (schedule_instance_id) DO UPDATE SET outcome_code = excluded.outcome_code,
  record_remarks = excluded.record_remarks, expr_proto_hash = excluded.expr_proto_hash,
  spec_fingerprint = excluded.spec_fingerprint, updated_at = excluded.updated_at

-- name: fired_ticks
SELECT job_id, last_tick FROM ing_schedule_tick

-- name: ticks
SELECT job_id, last_tick, outcome_code, detail, plan_id, updated_at FROM ing_schedule_tick ORDER BY job_id

-- name: write_tick
-- rows: job_id text, last_tick int, outcome_code text, detail text, plan_id text, updated_at int
INSERT INTO ing_schedule_tick (job_id, last_tick, outcome_code, detail, plan_id, updated_at)
SELECT job_id, last_tick, outcome_code, detail, plan_id, updated_at FROM rows WHERE true
ON CONFLICT (job_id) DO UPDATE SET last_tick = excluded.last_tick, outcome_code = excluded.outcome_code,
  detail = excluded.detail, plan_id = excluded.plan_id, updated_at = excluded.updated_at
WHERE excluded.last_tick >= ing_schedule_tick.last_tick

-- name: write_history
-- rows: job_id text, tick int, outcome_code text, detail text, plan_id text, fired_at int, then_cfg text, then_status text
INSERT INTO ing_schedule_history
  (job_id, tick, outcome_code, detail, plan_id, fired_at, then_cfg, then_status, then_detail, then_at)
SELECT job_id, tick, outcome_code, detail, plan_id, fired_at, then_cfg, then_status, '', NULL FROM rows WHERE true
ON CONFLICT (job_id, tick) DO NOTHING

-- name: purge_history
DELETE FROM ing_schedule_history WHERE job_id = :job AND fired_at < :before

-- name: purge_empty_instances
DELETE FROM ing_schedule_instance WHERE scheduler_code = 'cron' AND scheduler_job_id = :job AND triggered_at < :before
  AND outcome_code IN ('i_window_empty', 'i_window_covered', 'i_no_candidates')

-- name: schedule_history
SELECT job_id, tick, outcome_code, detail, plan_id, fired_at, then_status, then_detail, then_at
FROM ing_schedule_history WHERE :job = '' OR job_id = :job ORDER BY fired_at DESC, tick DESC LIMIT :limit

-- name: pending_exports
-- The latest tick of each schedule whose export waits and whose plan, with those of the ticks before it, is done. A plan
-- that is still under way keeps back its own tick and later ones, until `:late`, when its tick is not waited for longer;
-- it counts as unfinished until it ends, also after a later tick has written the file.
WITH own AS (SELECT job_id, tick, plan_id, fired_at, then_status FROM ing_schedule_history
  WHERE plan_id IS NOT NULL AND then_status IN ('PENDING', 'RUNNING', 'SUPERSEDED')),
busy AS (SELECT own.job_id, own.tick, own.fired_at FROM own WHERE
  EXISTS (SELECT 1 FROM ing_plan p WHERE p.plan_id = own.plan_id AND p.status_code IN ('DRAFT','SLICING','PARTIAL'))
  OR EXISTS (SELECT 1 FROM ing_task t WHERE t.plan_id = own.plan_id
    AND t.status_code IN ('QUEUED','DISPATCHED','EXECUTING'))
  OR EXISTS (SELECT 1 FROM ing_reslice_request r WHERE r.plan_id = own.plan_id AND r.status_code = 'OPEN'))
SELECT h.job_id, h.tick, h.then_cfg,
  (SELECT count(*) FROM own JOIN ing_task t ON t.plan_id = own.plan_id
    WHERE own.job_id = h.job_id AND own.tick <= h.tick AND own.then_status <> 'SUPERSEDED'
      AND t.status_code = 'FAILED') AS failed,
  (SELECT count(*) FROM busy WHERE busy.job_id = h.job_id AND busy.tick <= h.tick) AS unfinished
FROM ing_schedule_history h
WHERE (h.then_status = 'PENDING' OR (h.then_status = 'RUNNING' AND h.then_at < :lost))
  AND h.tick = (SELECT max(o.tick) FROM ing_schedule_history o WHERE o.job_id = h.job_id
    AND o.then_status IN ('PENDING', 'RUNNING')
    AND NOT EXISTS (SELECT 1 FROM busy WHERE busy.job_id = o.job_id AND busy.tick <= o.tick AND busy.fired_at > :late))
ORDER BY h.job_id

-- name: claim_export
UPDATE ing_schedule_history SET then_status = 'RUNNING', then_at = :now
WHERE job_id = :job AND tick = :tick AND (then_status = 'PENDING' OR (then_status = 'RUNNING' AND then_at < :lost))

-- name: settle_export
UPDATE ing_schedule_history SET then_status = :status, then_detail = :detail, then_at = :now
WHERE job_id = :job AND tick = :tick

-- name: supersede_exports
UPDATE ing_schedule_history SET then_status = 'SUPERSEDED' WHERE job_id = :job AND tick < :tick
  AND then_status IN ('PENDING', 'RUNNING')

-- name: plan
SELECT * FROM ing_plan WHERE plan_id = :plan_id

-- name: plan_for_update
SELECT status_code, progress, next_slice_no FROM ing_plan WHERE plan_id = :plan_id {for_update}

-- name: open_plans
SELECT plan_id, status_code FROM ing_plan WHERE status_code IN ('DRAFT','SLICING','PARTIAL')
ORDER BY priority, created_at LIMIT :limit

-- name: plan_progress
UPDATE ing_plan SET progress = :progress, next_slice_no = :next_slice_no,
  expected_requests = expected_requests + :expected,
  total_estimated = CASE WHEN :estimated < 0 THEN total_estimated ELSE coalesce(total_estimated, 0) + :estimated END,
  updated_at = :now
WHERE plan_id = :plan_id

-- name: plan_remarks
UPDATE ing_plan SET record_remarks = :remarks, updated_at = :now WHERE plan_id = :plan_id

-- name: trigger_of_plan
SELECT i.trigger_key, i.trigger_params, i.schedule_instance_id
FROM ing_plan p JOIN ing_schedule_instance i ON i.schedule_instance_id = p.schedule_instance_id
WHERE p.plan_id = :plan_id

-- name: initial_cursor
-- rows: provenance_code text, operation_code text, cursor_key text, namespace_scope_code text, namespace_key text, cursor_value text, normalized_instant int, schedule_instance_id text, plan_id text, created_at int
INSERT INTO ing_cursor (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
  cursor_type_code, cursor_value, normalized_instant, schedule_instance_id, plan_id, created_at, updated_at)
SELECT provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, 'TIME', cursor_value,
  normalized_instant, schedule_instance_id, plan_id, created_at, created_at
FROM rows WHERE true
ON CONFLICT (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key) DO NOTHING

-- name: candidates_signalled
SELECT provider_id FROM ing_signal
WHERE provenance_code = :source AND endpoint_name = :endpoint AND plan_id IS NULL
ORDER BY provider_id LIMIT :limit

-- name: take_signals
-- rows: provider_id text
UPDATE ing_signal SET plan_id = :plan_id FROM rows
WHERE ing_signal.provenance_code = :source AND ing_signal.endpoint_name = :endpoint
  AND ing_signal.provider_id = rows.provider_id AND ing_signal.plan_id IS NULL

-- name: id_slices_of
-- rows: task_id text
SELECT t.task_id, t.plan_id, t.provenance_code, t.endpoint_name, s.slice_spec
FROM rows JOIN ing_task t ON t.task_id = rows.task_id JOIN ing_plan_slice s ON s.slice_id = t.slice_id
WHERE t.operation_code = 'UPDATE'

-- name: release_signals
-- rows: provider_id text
-- A record that was looked at after the signal was raised is done, whatever became of the others.
UPDATE ing_signal SET plan_id = NULL FROM rows
WHERE ing_signal.provenance_code = :source AND ing_signal.provider_id = rows.provider_id AND ing_signal.plan_id = :plan_id
  AND NOT EXISTS (SELECT 1 FROM ing_record r WHERE r.provenance_code = ing_signal.provenance_code
    AND r.endpoint_name = ing_signal.endpoint_name AND r.provider_id = ing_signal.provider_id
    AND r.refresh_checked_at > ing_signal.raised_at)

-- name: raise_signals
-- rows: provenance_code text, endpoint_name text, provider_id text, reason_code text, detail text, raised_by text, raised_at int
INSERT INTO ing_signal (provenance_code, endpoint_name, provider_id, reason_code, detail, raised_by, raised_at)
SELECT provenance_code, endpoint_name, provider_id, reason_code, detail, raised_by, raised_at FROM rows WHERE true
ON CONFLICT (provenance_code, endpoint_name, provider_id) DO UPDATE SET reason_code = excluded.reason_code,
  detail = excluded.detail, raised_by = excluded.raised_by, raised_at = excluded.raised_at, plan_id = NULL

-- name: candidates_changed
-- rows: expr_hash text
SELECT provider_id FROM ing_record
WHERE provenance_code = :source AND endpoint_name = :endpoint AND deleted = 0
  AND expr_hash NOT IN (SELECT rows.expr_hash FROM rows)
ORDER BY provider_id LIMIT :limit

-- name: candidates_stale
SELECT provider_id FROM ing_record
WHERE provenance_code || '/' || endpoint_name = :source || '/' || :endpoint AND refresh_checked_at < :before AND deleted = 0
ORDER BY refresh_checked_at, provider_id LIMIT :limit

-- name: records_of
SELECT count(*) FROM ing_record WHERE provenance_code = :source AND endpoint_name = :endpoint

-- name: reslice_open
SELECT task_id, plan_id, slice_id, rest, observed_total, reason_code FROM ing_reslice_request
WHERE status_code = 'OPEN' ORDER BY created_at LIMIT :limit

-- name: reslice_is_open
SELECT 1 FROM ing_reslice_request WHERE task_id = :task_id AND status_code = 'OPEN'

-- name: reslice_settle
UPDATE ing_reslice_request SET status_code = :status, record_remarks = :remarks, updated_at = :now
WHERE task_id = :task_id AND status_code = 'OPEN'

-- name: reslice_request
-- rows: task_id text, plan_id text, slice_id text, rest text, observed_total int, reason_code text, created_at int
INSERT INTO ing_reslice_request (task_id, plan_id, slice_id, rest, observed_total, reason_code, status_code, created_at, updated_at)
SELECT task_id, plan_id, slice_id, rest, observed_total, reason_code, 'OPEN', created_at, created_at FROM rows WHERE true
ON CONFLICT (task_id) DO NOTHING

-- name: cut_task_window
UPDATE ing_task SET window_to = :window_to, updated_at = :now WHERE task_id = :task_id

-- name: task_place
SELECT plan_id, slice_id FROM ing_task WHERE task_id = :task_id

-- name: pressure_add
-- rows: partition_key text, reason_code text, noted_at int
INSERT INTO ing_pressure (partition_key, level, reason_code, noted_at)
SELECT partition_key, 1, reason_code, noted_at FROM rows WHERE true
ON CONFLICT (partition_key) DO UPDATE SET reason_code = excluded.reason_code, noted_at = excluded.noted_at,
  level = CASE WHEN ing_pressure.noted_at <= :since THEN 1
    WHEN ing_pressure.level >= :most THEN ing_pressure.level ELSE ing_pressure.level + 1 END

-- name: pressure_of
SELECT level FROM ing_pressure WHERE partition_key = :partition AND noted_at > :since
