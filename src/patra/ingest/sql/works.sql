-- name: works_page
SELECT provenance_code, endpoint_name, provider_id, updated_at, deleted, content, changed_at FROM ing_record
WHERE (provenance_code, endpoint_name, provider_id) > (:source, :endpoint, :id) AND updated_at >= :since
ORDER BY provenance_code, endpoint_name, provider_id LIMIT :limit

-- name: works_page_of_source
SELECT provenance_code, endpoint_name, provider_id, updated_at, deleted, content, changed_at FROM ing_record
WHERE provenance_code = :source AND (endpoint_name, provider_id) > (:endpoint, :id) AND updated_at >= :since
ORDER BY provenance_code, endpoint_name, provider_id LIMIT :limit

-- name: works_count
SELECT count(*) FROM ing_record WHERE updated_at >= :since

-- name: works_count_of_source
SELECT count(*) FROM ing_record WHERE provenance_code = :source AND updated_at >= :since

-- name: works_page_of_topic
SELECT r.provenance_code, r.endpoint_name, r.provider_id, r.updated_at, r.deleted, r.content, r.changed_at FROM ing_topic_record t
JOIN ing_record r ON r.provenance_code = t.provenance_code AND r.endpoint_name = t.endpoint_name
  AND r.provider_id = t.provider_id
WHERE t.topic = :topic AND (t.provenance_code, t.endpoint_name, t.provider_id) > (:source, :endpoint, :id)
  AND (:only = '' OR t.provenance_code = :only) AND r.updated_at >= :since
ORDER BY t.provenance_code, t.endpoint_name, t.provider_id LIMIT :limit

-- name: works_count_of_topic
SELECT count(*) FROM ing_topic_record t
JOIN ing_record r ON r.provenance_code = t.provenance_code AND r.endpoint_name = t.endpoint_name
  AND r.provider_id = t.provider_id
WHERE t.topic = :topic AND (:only = '' OR t.provenance_code = :only) AND r.updated_at >= :since

-- name: topics
-- those that are followed and those that hold records; the latter one by one along the key, not row by row
WITH RECURSIVE noted (topic) AS (
  SELECT min(topic) FROM ing_topic_record
  UNION ALL
  SELECT (SELECT min(r.topic) FROM ing_topic_record r WHERE r.topic > noted.topic) FROM noted
  WHERE noted.topic IS NOT NULL
)
SELECT topic FROM noted WHERE topic IS NOT NULL UNION SELECT topic FROM ing_topic_selection ORDER BY topic
