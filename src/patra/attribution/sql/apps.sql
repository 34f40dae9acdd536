-- name: app_keys
SELECT key_hash, app_id, created_at, revoked_at FROM att_app_key ORDER BY app_id, created_at, key_hash

-- name: revoke_keys
-- rows: key_hash blob
UPDATE att_app_key SET revoked_at = :now FROM rows WHERE att_app_key.key_hash = rows.key_hash AND revoked_at IS NULL
