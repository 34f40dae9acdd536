-- name: begin_keys
-- rows: key blob, fingerprint blob, first_at int, expires_at int
INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at)
SELECT :scope, key, fingerprint, 1, first_at, expires_at FROM rows WHERE true
ON CONFLICT (scope, key) DO NOTHING

-- name: past_cycles
-- rows: key blob
SELECT p.key, p.cycle FROM rows JOIN att_past p ON p.key = rows.key
