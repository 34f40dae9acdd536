-- name: old_batches
SELECT b.* FROM ing_task_run_batch b WHERE b.created_at < :before
  AND NOT EXISTS (SELECT 1 FROM ing_history_hold h WHERE h.run_id = b.run_id AND h.held_until > :now)
ORDER BY b.created_at, b.batch_id LIMIT :limit

-- name: drop_batches
-- rows: batch_id text
DELETE FROM ing_task_run_batch WHERE batch_id IN (SELECT batch_id FROM rows)

-- name: old_cursor_events
SELECT e.* FROM ing_cursor_event e
WHERE NOT EXISTS (SELECT 1 FROM ing_history_hold h WHERE h.run_id = e.run_id AND h.held_until > :now)
ORDER BY e.event_id LIMIT :limit

-- name: drop_cursor_events
-- rows: event_id int
DELETE FROM ing_cursor_event WHERE event_id IN (SELECT event_id FROM rows)

-- name: old_runs
SELECT r.* FROM ing_task_run r JOIN ing_task t ON t.task_id = r.task_id
WHERE r.finished_at < :before AND t.status_code IN ('SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')
  AND NOT EXISTS (SELECT 1 FROM ing_history_hold h WHERE h.run_id = r.run_id AND h.held_until > :now)
ORDER BY r.finished_at, r.run_id LIMIT :limit

-- name: drop_runs
-- rows: run_id text
DELETE FROM ing_task_run WHERE run_id IN (SELECT run_id FROM rows)

-- name: drop_list_keys
-- rows: task_id text
DELETE FROM ing_list_keys WHERE task_id IN (SELECT task_id FROM rows)

-- name: old_quarantine
SELECT q.* FROM ing_quarantine q WHERE q.status_code <> 'OPEN' AND q.last_seen_at < :before
  AND NOT EXISTS (SELECT 1 FROM ing_history_hold h WHERE h.run_id = q.run_id AND h.held_until > :now)
ORDER BY q.last_seen_at, q.provenance_code, q.endpoint_name, q.item_key LIMIT :limit

-- name: drop_quarantine
-- rows: provenance_code text, endpoint_name text, item_key text
DELETE FROM ing_quarantine WHERE status_code <> 'OPEN'
  AND (provenance_code, endpoint_name, item_key) IN (SELECT provenance_code, endpoint_name, item_key FROM rows)

-- name: drop_alerts
DELETE FROM ing_alert WHERE state_code = 'OVER' AND over_at < :before

-- name: drop_queue_stats
DELETE FROM ing_queue_stat WHERE day < :day

-- name: drop_quotas
DELETE FROM ing_quota WHERE period_start < :short

-- name: old_small
SELECT 1 WHERE EXISTS (SELECT 1 FROM ing_alert WHERE state_code = 'OVER' AND over_at < :before)
  OR EXISTS (SELECT 1 FROM ing_queue_stat WHERE day < :day)
  OR EXISTS (SELECT 1 FROM ing_quota WHERE period_start < :short)
  OR EXISTS (SELECT 1 FROM ing_history_hold WHERE held_until < :now)

-- name: bodies_total
SELECT coalesce(sum(size), 0) FROM ing_body

-- name: oldest_bodies
SELECT body_hash, size, kept_at FROM ing_body ORDER BY kept_at, size, body_hash LIMIT :limit

-- name: drop_bodies
-- rows: body_hash text
DELETE FROM ing_body WHERE body_hash IN (SELECT body_hash FROM rows)

-- name: record_places
SELECT provenance_code, endpoint_name FROM reg_prov_endpoint_def ORDER BY provenance_code, endpoint_name

-- name: old_records
SELECT provider_id FROM ing_record
WHERE provenance_code || '/' || endpoint_name = :source || '/' || :endpoint AND changed_at < :before
ORDER BY changed_at, provider_id LIMIT :limit

-- name: drop_topic_records
-- rows: provider_id text
DELETE FROM ing_topic_record WHERE provenance_code = :source AND endpoint_name = :endpoint
  AND provider_id IN (SELECT provider_id FROM rows)

-- name: drop_identifiers
-- rows: provider_id text
DELETE FROM ing_record_identifier WHERE provenance_code = :source AND endpoint_name = :endpoint
  AND provider_id IN (SELECT provider_id FROM rows)

-- name: drop_topics_of_quarantine
-- rows: provenance_code text, endpoint_name text, item_key text
-- what was set aside and never landed leaves its topics with its row; the key of what has an id is that id
DELETE FROM ing_topic_record
WHERE (provenance_code, endpoint_name, provider_id) IN (SELECT provenance_code, endpoint_name, item_key FROM rows)
  AND NOT EXISTS (SELECT 1 FROM ing_record r WHERE r.provenance_code = ing_topic_record.provenance_code
    AND r.endpoint_name = ing_topic_record.endpoint_name AND r.provider_id = ing_topic_record.provider_id)
  AND NOT EXISTS (SELECT 1 FROM ing_quarantine q WHERE q.provenance_code = ing_topic_record.provenance_code
    AND q.endpoint_name = ing_topic_record.endpoint_name AND q.item_key = ing_topic_record.provider_id)

-- name: drop_records
-- rows: provider_id text
DELETE FROM ing_record WHERE provenance_code = :source AND endpoint_name = :endpoint
  AND provider_id IN (SELECT provider_id FROM rows)

-- name: hold_history
-- rows: run_id text, held_until int
INSERT INTO ing_history_hold (run_id, held_until) SELECT run_id, held_until FROM rows WHERE true
ON CONFLICT (run_id) DO UPDATE SET held_until = excluded.held_until

-- name: drop_history_holds
DELETE FROM ing_history_hold WHERE held_until < :now
