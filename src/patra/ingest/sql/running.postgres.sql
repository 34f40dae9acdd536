-- PostgreSQL joins a set with as many rows as it guesses to be there, and of a table that was filled a moment ago it
-- guesses wrongly: it would read the endpoint from end to end. A list of keys leaves it the primary key alone.

-- name: records_seen
SELECT r.provider_id, r.updated_at, r.record_version, r.expr_hash, r.content_hash FROM ing_record r
WHERE r.provenance_code = :source AND r.endpoint_name = :endpoint
  AND r.provider_id = ANY (ARRAY(SELECT provider_id FROM rows)) {for_update}

-- name: records_known
SELECT r.provider_id, r.updated_at, r.record_version, r.expr_hash, r.content_hash FROM ing_record r
WHERE r.provenance_code = :source AND r.endpoint_name = :endpoint
  AND r.provider_id = ANY (ARRAY(SELECT provider_id FROM rows))

-- name: records_update
UPDATE ing_record SET updated_at = rows.updated_at, record_version = rows.record_version, deleted = rows.deleted,
  expr_hash = :expr_hash, content = rows.content, content_hash = rows.content_hash, task_id = :task_id,
  run_id = :run_id, batch_no = :batch_no, changed_at = :now, refresh_checked_at = :now
FROM rows
WHERE ing_record.provenance_code = :source AND ing_record.endpoint_name = :endpoint
  AND ing_record.provider_id = ANY (ARRAY(SELECT provider_id FROM rows))
  AND ing_record.provider_id = rows.provider_id AND ing_record.updated_at = rows.was_updated_at
RETURNING ing_record.provider_id

-- name: records_checked
UPDATE ing_record SET refresh_checked_at = :now
WHERE provenance_code = :source AND endpoint_name = :endpoint
  AND provider_id = ANY (ARRAY(SELECT provider_id FROM rows))

-- name: cursor_observed_before
-- in the order of bytes: that of a language leaves out dots and colons
SELECT max(replace(observed_max_value, 'Z', '') COLLATE "C") FROM ing_cursor_event
WHERE provenance_code = :source AND operation_code = :operation AND namespace_scope_code = :scope
  AND namespace_key = :namespace AND cursor_key = :key AND cursor_type_code = 'TIME'

-- name: cursor_first_lock
SELECT pg_advisory_xact_lock(hashtext('ing_cursor ' || :source || ' ' || :operation || ' ' || :key || ' ' || :scope || ' ' || :namespace))
