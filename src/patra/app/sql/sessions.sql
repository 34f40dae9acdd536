-- name: session_find
SELECT token_hash, seen_at FROM app_session WHERE cookie_hash = :cookie AND seen_at > :since AND created_at > :begun

-- name: session_seen
UPDATE app_session SET seen_at = :now WHERE cookie_hash = :cookie

-- name: session_end
DELETE FROM app_session WHERE cookie_hash = :cookie

-- name: session_purge
DELETE FROM app_session WHERE cookie_hash IN (
  SELECT cookie_hash FROM app_session WHERE seen_at <= :since ORDER BY seen_at LIMIT :limit
)
