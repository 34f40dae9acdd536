-- Sets of keys are looked up one by one: OFFSET 0 keeps the look-up as it is written. As a join PostgreSQL would read the
-- whole table while it takes it for a small one, which it does until the next ANALYZE.

-- name: packs_of_items
SELECT d.item, d.archived, d.body FROM rows
CROSS JOIN LATERAL (SELECT item, archived, body FROM att_decision e WHERE e.item = rows.item OFFSET 0) d

-- name: statuses_by_id
SELECT s.id, s.audit_status, s.attribution_status, s.settled_code, s.settled_at, s.superseded_told_at FROM rows
CROSS JOIN LATERAL (SELECT * FROM att_status e WHERE e.id = rows.id OFFSET 0) s

-- name: billables_by_id
SELECT b.decision_id, b.status FROM rows
CROSS JOIN LATERAL (SELECT decision_id, status FROM att_billable e WHERE e.decision_id = rows.id OFFSET 0) b

-- name: batch_ids
SELECT l.number, l.batch_id FROM rows
CROSS JOIN LATERAL (SELECT number, batch_id FROM att_log e WHERE e.number = rows.number OFFSET 0) l

-- name: rejects_of_decisions
SELECT r.decision_id, r.at, r.app_id, r.batch_id, r.event_index, r.code, r.server_event_key, r.event_id, r.field_path,
  r.expected, r.also_wrong, r.digest, NULL, coalesce(r.count, 1)
FROM rows CROSS JOIN LATERAL (SELECT * FROM att_reject e WHERE e.decision_id = rows.decision_id OFFSET 0) r
ORDER BY r.decision_id, r.at, r.key LIMIT :limit

-- name: bodies_of_batch
-- Found by the batch, then sorted: PostgreSQL might read the log backwards instead, until it meets the batch.
SELECT app_id, at, body FROM (
  SELECT number, app_id, at, body FROM att_log WHERE batch_id = :batch_id AND body IS NOT NULL AND kind = 'batch' OFFSET 0
) AS found ORDER BY number DESC LIMIT :limit

-- name: refused_by_batch
SELECT number, at, batch_id, code FROM (
  SELECT number, at, batch_id, code FROM att_log WHERE batch_id = :batch_id AND kind = 'refused' AND number < :before
    AND (:code = '' OR code = :code) OFFSET 0
) AS found ORDER BY number DESC LIMIT :limit

-- name: billed_twice_between
SELECT count(*) FROM att_billed_twice t
CROSS JOIN LATERAL (SELECT fact_at FROM att_billable e WHERE e.decision_id = t.decision_id OFFSET 0) b
WHERE b.fact_at >= :begin AND b.fact_at < :end
