-- Sets of keys are looked up one by one: OFFSET 0 keeps the look-up as it is written. As a join PostgreSQL would read the
-- whole table while it takes it for a small one, which it does until the next ANALYZE.

-- name: story_records
SELECT r.provenance_code, r.endpoint_name, r.provider_id, r.updated_at, r.record_version, r.deleted, r.expr_hash,
  r.content_hash, r.task_id, r.run_id, r.batch_no, r.first_seen_at, r.changed_at
FROM rows
CROSS JOIN (SELECT DISTINCT provenance_code, endpoint_name FROM reg_prov_endpoint_def) d
CROSS JOIN LATERAL (
  SELECT * FROM ing_record e WHERE e.provenance_code = d.provenance_code AND e.endpoint_name = d.endpoint_name
    AND e.provider_id = rows.provider_id OFFSET 0
) r
ORDER BY r.provenance_code, r.endpoint_name LIMIT :limit

-- name: story_records_identified
SELECT r.provenance_code, r.endpoint_name, r.provider_id, r.updated_at, r.record_version, r.deleted, r.expr_hash,
  r.content_hash, r.task_id, r.run_id, r.batch_no, r.first_seen_at, r.changed_at
FROM rows
CROSS JOIN LATERAL (SELECT * FROM ing_record_identifier e WHERE e.identifier = rows.identifier OFFSET 0) i
CROSS JOIN LATERAL (
  SELECT * FROM ing_record e WHERE e.provenance_code = i.provenance_code AND e.endpoint_name = i.endpoint_name
    AND e.provider_id = i.provider_id OFFSET 0
) r
ORDER BY r.provenance_code, r.endpoint_name, r.provider_id LIMIT :limit

-- name: lineage_runs
SELECT r.run_id, r.task_id, r.attempt_no, r.status_code, r.reason_code, r.started_at, r.finished_at
FROM rows CROSS JOIN LATERAL (SELECT * FROM ing_task_run e WHERE e.task_id = rows.task_id OFFSET 0) r
ORDER BY r.task_id, r.attempt_no

-- name: lineage_batches
SELECT b.run_id, b.batch_no, b.phase_code, b.status_code, b.error_level, b.reason_code, b.created_at
FROM rows CROSS JOIN LATERAL (
  SELECT * FROM ing_task_run_batch e WHERE e.run_id = rows.run_id AND e.batch_no <= :most OFFSET 0
) b
ORDER BY b.run_id, b.batch_no
