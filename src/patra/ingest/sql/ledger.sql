-- name: ledger_write
-- rows: task_id text, leg_code text, run_id text, plan_id text, provenance_code text, endpoint_name text, operation_code text, namespace_key text, window_from int, window_to int, status_code text, total_code text, promised_first int, promised_last int, positions int, distinct_ids int, null_items int, without_id int, suppressed int, inserted int, updated int, equal_count int, older_count int, repeated int, outside int, quarantined int, gone int, readings int, missing int, detail text, spec_fingerprint text, closed_at int, proof_code text
INSERT INTO ing_window_ledger (task_id, leg_code, run_id, plan_id, provenance_code, endpoint_name, operation_code,
  namespace_key, window_from, window_to, status_code, total_code, promised_first, promised_last, positions,
  distinct_ids, null_items, without_id, suppressed, inserted, updated, equal_count, older_count, repeated, outside,
  quarantined, gone, readings, missing, detail, spec_fingerprint, closed_at, proof_code)
SELECT task_id, leg_code, run_id, plan_id, provenance_code, endpoint_name, operation_code, namespace_key, window_from,
  window_to, status_code, total_code, promised_first, promised_last, positions, distinct_ids, null_items, without_id,
  suppressed, inserted, updated, equal_count, older_count, repeated, outside, quarantined, gone, readings, missing,
  detail, spec_fingerprint, closed_at, proof_code
FROM rows WHERE true
ON CONFLICT (task_id, leg_code) DO UPDATE SET run_id = excluded.run_id, status_code = excluded.status_code,
  total_code = excluded.total_code, promised_first = excluded.promised_first, promised_last = excluded.promised_last,
  positions = excluded.positions, distinct_ids = excluded.distinct_ids, null_items = excluded.null_items,
  without_id = excluded.without_id, suppressed = excluded.suppressed, inserted = excluded.inserted,
  updated = excluded.updated, equal_count = excluded.equal_count, older_count = excluded.older_count,
  repeated = excluded.repeated, outside = excluded.outside, quarantined = excluded.quarantined, gone = excluded.gone,
  readings = excluded.readings, missing = excluded.missing, detail = excluded.detail,
  spec_fingerprint = excluded.spec_fingerprint, closed_at = excluded.closed_at, proof_code = excluded.proof_code

-- name: ledger_incomplete
SELECT l.task_id, l.run_id, l.provenance_code, l.endpoint_name, l.operation_code, l.namespace_key, l.window_from,
  l.window_to, l.missing, l.detail, l.closed_at, t.status_code AS task_status
FROM ing_window_ledger l JOIN ing_task t ON t.task_id = l.task_id
WHERE l.status_code = 'INCOMPLETE' AND l.leg_code = 'LIST'
  AND (:source = '' OR l.provenance_code = :source) AND (:endpoint = '' OR l.endpoint_name = :endpoint)
ORDER BY l.provenance_code, l.endpoint_name, l.operation_code, l.window_from, l.task_id

-- name: key_list_read_since
-- HARVEST by key: a list of the same namespace that was read to its end after a task without a window failed.
SELECT s.slice_spec, later.slice_spec FROM ing_task t JOIN ing_plan_slice s ON s.slice_id = t.slice_id
JOIN ing_task n ON n.partition_key = t.partition_key AND n.status_code = 'SUCCEEDED'
  AND n.namespace_key = t.namespace_key AND n.window_from IS NULL AND n.finished_at >= t.finished_at
JOIN ing_plan_slice later ON later.slice_id = n.slice_id
WHERE t.task_id = :task_id AND t.operation_code = 'HARVEST' AND t.window_from IS NULL
ORDER BY n.finished_at DESC LIMIT 1

-- name: ledger_page
SELECT l.*, t.status_code AS task_status FROM ing_window_ledger l JOIN ing_task t ON t.task_id = l.task_id
WHERE l.provenance_code = :source AND (:endpoint = '' OR l.endpoint_name = :endpoint)
  AND (:operation = '' OR l.operation_code = :operation)
  AND (coalesce(l.window_from, 0), l.task_id || l.leg_code) > (:after_from, :after_task)
ORDER BY coalesce(l.window_from, 0), l.task_id || l.leg_code LIMIT :limit

-- name: ledger_evidence
-- the ids of a task's runs begin with its own
SELECT run_id, batch_no, request_digest, response_digest, status_code FROM ing_task_run_batch
WHERE run_id > :task_id || '.r' AND run_id < :task_id || '.s' ORDER BY run_id, batch_no

-- name: ledger_sum
-- Windows that add up, by the sums that triggers keep; few changes of them are not in yet.
SELECT CAST(coalesce(sum(windows), 0) AS BIGINT) AS windows,
  CAST(coalesce(sum(promised), 0) AS BIGINT) AS promised,
  CAST(coalesce(sum(positions), 0) AS BIGINT) AS positions,
  CAST(coalesce(sum(landed), 0) AS BIGINT) AS landed,
  CAST(coalesce(sum(quarantined), 0) AS BIGINT) AS quarantined,
  CAST(coalesce(sum(missing), 0) AS BIGINT) AS missing,
  CAST(coalesce(sum(unproven), 0) AS BIGINT) AS unproven
FROM (SELECT * FROM ing_window_sum WHERE provenance_code = :source
  UNION ALL SELECT provenance_code, endpoint_name, operation_code, windows, promised, positions, landed, quarantined,
    missing, unproven FROM ing_window_sum_change WHERE provenance_code = :source) AS parts
WHERE (:endpoint = '' OR endpoint_name = :endpoint) AND (:operation = '' OR operation_code = :operation)

-- name: window_sum_fold
WITH folded AS (DELETE FROM ing_window_sum_change RETURNING provenance_code, endpoint_name, operation_code, windows,
  promised, positions, landed, quarantined, missing, unproven)
INSERT INTO ing_window_sum (provenance_code, endpoint_name, operation_code, windows, promised, positions, landed,
  quarantined, missing, unproven)
SELECT provenance_code, endpoint_name, operation_code, CAST(sum(windows) AS BIGINT), CAST(sum(promised) AS BIGINT),
  CAST(sum(positions) AS BIGINT), CAST(sum(landed) AS BIGINT), CAST(sum(quarantined) AS BIGINT),
  CAST(sum(missing) AS BIGINT), CAST(sum(unproven) AS BIGINT)
FROM folded GROUP BY provenance_code, endpoint_name, operation_code
ORDER BY provenance_code, endpoint_name, operation_code
ON CONFLICT (provenance_code, endpoint_name, operation_code) DO UPDATE SET
  windows = ing_window_sum.windows + excluded.windows,
  promised = ing_window_sum.promised + excluded.promised,
  positions = ing_window_sum.positions + excluded.positions,
  landed = ing_window_sum.landed + excluded.landed,
  quarantined = ing_window_sum.quarantined + excluded.quarantined,
  missing = ing_window_sum.missing + excluded.missing,
  unproven = ing_window_sum.unproven + excluded.unproven

-- name: window_sum_changes
SELECT count(*) FROM (SELECT 1 FROM ing_window_sum_change LIMIT :limit) AS counted

-- name: own_unproven
SELECT count(*) FROM ing_window_ledger
WHERE provenance_code = :source AND endpoint_name = :endpoint AND operation_code = :operation
  AND leg_code = 'LIST' AND status_code = 'COMPLETE' AND proof_code = 'NONE' AND namespace_key = :namespace
  AND (window_from IS NULL OR (window_to > :since AND window_from < :until))

-- name: ledger_open
SELECT l.*, t.status_code AS task_status FROM ing_window_ledger l JOIN ing_task t ON t.task_id = l.task_id
WHERE l.provenance_code = :source AND (:endpoint = '' OR l.endpoint_name = :endpoint)
  AND (:operation = '' OR l.operation_code = :operation)
  AND (l.status_code = 'INCOMPLETE' OR l.status_code = 'FAILED')

-- name: ledger_reread
-- Windows that a schedule has read; a second phase has its records in the DETAIL leg.
SELECT coalesce(sum(CASE WHEN l.leg_code = 'LIST' THEN 1 ELSE 0 END), 0) AS windows,
  sum(CASE WHEN l.leg_code = 'LIST' AND l.status_code IN ('INCOMPLETE', 'FAILED') THEN 1 ELSE 0 END) AS open,
  min(l.window_from) AS window_from, max(l.window_to) AS window_to, sum(l.inserted) AS inserted,
  sum(l.updated) AS updated, max(l.closed_at) AS closed_at
FROM ing_schedule_instance i
JOIN ing_plan p ON p.schedule_instance_id = i.schedule_instance_id
JOIN ing_window_ledger l ON l.plan_id = p.plan_id
WHERE i.scheduler_job_id = :job AND i.scheduler_job_id <> '' AND l.provenance_code = :source
  AND l.operation_code = 'BACKFILL'
