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
ON CONFLICT (provenance_code, endpoint_name, provider_id) DO NOTHING RETURNING provider_id

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
ON CONFLICT (provenance_code, endpoint_name, item_key) DO UPDATE SET status_code = 'OPEN',
  reason_code = excluded.reason_code, field_path = excluded.field_path, detail = excluded.detail,
  sample = excluded.sample, sample_hash = excluded.sample_hash, request_digest = excluded.request_digest,
  run_id = excluded.run_id, batch_no = excluded.batch_no, task_id = excluded.task_id,
  seen_count = ing_quarantine.seen_count + 1, last_seen_at = excluded.last_seen_at
RETURNING provider_id, seen_count

-- name: quarantine_resolve
-- rows: item_key text
UPDATE ing_quarantine SET status_code = 'RESOLVED', last_seen_at = :now FROM rows
WHERE ing_quarantine.provenance_code = :source AND ing_quarantine.endpoint_name = :endpoint
  AND ing_quarantine.item_key = rows.item_key AND ing_quarantine.status_code = 'OPEN'

-- name: quarantine_any_open
SELECT 1 FROM ing_quarantine
WHERE provenance_code = :source AND endpoint_name = :endpoint AND status_code = 'OPEN' LIMIT 1

-- name: credential_cfg
SELECT cfg FROM reg_prov_credential WHERE provenance_code = :source AND credential_code = :code
