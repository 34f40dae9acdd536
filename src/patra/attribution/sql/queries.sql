-- name: closure_by_key
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number FROM att_closure
WHERE number IN (
  SELECT number FROM att_closure_key WHERE key = :key
  UNION SELECT number FROM att_closure
  WHERE number > (SELECT value FROM att_mark WHERE name = 'closures_keyed') AND key = :key
)

-- name: closures_of_keys
-- rows: key blob
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number FROM att_closure
WHERE number IN (
  SELECT k.number FROM rows JOIN att_closure_key k ON k.key = rows.key
  UNION SELECT number FROM att_closure
  WHERE number > (SELECT value FROM att_mark WHERE name = 'closures_keyed') AND key IN (SELECT key FROM rows)
)

-- name: closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number FROM att_closure
WHERE number > :number AND (:state = '' OR state = :state) ORDER BY number LIMIT :limit

-- name: open_closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number
FROM att_closure INDEXED BY att_closure_open WHERE state = 'open' AND number > :number ORDER BY number LIMIT :limit

-- name: failed_closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number
FROM att_closure INDEXED BY att_closure_failed WHERE state = 'closed_failure' AND number > :number ORDER BY number LIMIT :limit

-- name: closures_looked_through
SELECT number FROM att_closure WHERE number > :number ORDER BY number LIMIT 1 OFFSET :look

-- name: succeeded_closures_page
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number FROM att_closure
WHERE number > :number AND number <= :until AND state = 'closed_success' ORDER BY number LIMIT :limit

-- name: closures_by_deadline
SELECT key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number FROM att_closure
WHERE due_at >= :due AND due_at < :until AND (due_at > :due OR key > :key) AND (:app = '' OR app_id = :app)
ORDER BY due_at, key LIMIT :limit

-- name: deadlines
-- -1: those that have passed, -2: those behind the end.
SELECT CASE WHEN due_at < :now THEN -1 WHEN due_at >= :end THEN -2 ELSE (due_at - :now) / :step END, count(*) FROM (
  SELECT due_at FROM att_closure WHERE due_at IS NOT NULL ORDER BY due_at LIMIT :limit
) AS first GROUP BY 1 ORDER BY 1

-- name: rejects_page
SELECT r.key, r.at, r.app_id, r.batch_id, r.event_index, r.code, r.server_event_key, r.event_id, r.field_path,
  r.expected, r.also_wrong, r.digest, r.raw, coalesce(r.count, d.count, 1)
FROM att_reject r LEFT JOIN att_drop d ON d.key = r.key
WHERE (r.at < :before OR (r.at = :before AND r.key > :after)) AND (:batch_id = '' OR r.batch_id = :batch_id) AND (:code = '' OR r.code = :code)
  AND (:quarantined = 0 OR r.raw IS NOT NULL) AND r.at >= :since
ORDER BY r.at DESC, r.key LIMIT :limit

-- name: rejects_reach
SELECT min(at), count(*) FROM (
  SELECT at FROM att_reject WHERE at >= :since AND at < :until ORDER BY at DESC LIMIT :most
) latest

-- name: rejects_over_time
SELECT (at - :since) / :step, code, app_id, count(*) FROM (
  SELECT at, code, app_id, raw IS NOT NULL AS quarantined FROM att_reject
  WHERE at >= :since AND at < :until ORDER BY at DESC LIMIT :most
) latest WHERE (:code = '' OR code = :code) AND (:quarantined = 0 OR quarantined) GROUP BY 1, code, app_id

-- name: rejects_of_decisions
-- rows: decision_id int
SELECT r.decision_id, r.at, r.app_id, r.batch_id, r.event_index, r.code, r.server_event_key, r.event_id, r.field_path,
  r.expected, r.also_wrong, r.digest, NULL, coalesce(r.count, 1)
FROM rows JOIN att_reject r ON r.decision_id = rows.decision_id ORDER BY r.decision_id, r.at, r.key LIMIT :limit

-- name: refused_page
SELECT number, at, batch_id, code FROM att_log
WHERE kind = 'refused' AND number < :before AND (:code = '' OR code = :code) ORDER BY number DESC LIMIT :limit

-- name: refused_by_batch
SELECT number, at, batch_id, code FROM att_log
WHERE batch_id = :batch_id AND kind = 'refused' AND number < :before AND (:code = '' OR code = :code)
ORDER BY number DESC LIMIT :limit
