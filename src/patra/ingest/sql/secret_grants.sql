-- name: secret_grants
SELECT provenance_code, reference, hosts, allowed_by, allowed_at
FROM ing_secret_grant WHERE revoked_at IS NULL AND (:source = '' OR provenance_code = :source)
ORDER BY provenance_code, reference

-- name: secret_grant_revoke
UPDATE ing_secret_grant SET revoked_by = :by, revoked_at = :now
WHERE provenance_code = :source AND reference = :reference AND revoked_at IS NULL

-- name: secret_grant_revision
SELECT count(*), count(revoked_at) FROM ing_secret_grant
