-- name: works_page
SELECT provenance_code, endpoint_name, provider_id, updated_at, deleted, content FROM ing_record
WHERE (provenance_code, endpoint_name, provider_id) > (:source, :endpoint, :id) AND updated_at >= :since
ORDER BY provenance_code, endpoint_name, provider_id LIMIT :limit

-- name: works_page_of_source
SELECT provenance_code, endpoint_name, provider_id, updated_at, deleted, content FROM ing_record
WHERE provenance_code = :source AND (endpoint_name, provider_id) > (:endpoint, :id) AND updated_at >= :since
ORDER BY provenance_code, endpoint_name, provider_id LIMIT :limit

-- name: works_count
SELECT count(*) FROM ing_record WHERE updated_at >= :since

-- name: works_count_of_source
SELECT count(*) FROM ing_record WHERE provenance_code = :source AND updated_at >= :since
