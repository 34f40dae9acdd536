-- name: token_find
SELECT name, role, scope, expires_at, revoked_at, used_at FROM app_token WHERE token_hash = :token

-- name: token_used
UPDATE app_token SET used_at = :now WHERE token_hash = :token AND (used_at IS NULL OR used_at < :since)

-- name: token_list
SELECT token_hash, name, role, scope, created_at, created_by, expires_at, revoked_at, used_at
FROM app_token
WHERE :name = '' OR name = :name
ORDER BY name, created_at, token_hash

-- name: token_revoke
UPDATE app_token SET revoked_at = :now
WHERE name = :name AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)

-- name: token_expire
UPDATE app_token SET expires_at = :until
WHERE name = :name AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :until)
