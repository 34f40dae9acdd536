-- name: begin_keys
-- rows: key key16, fingerprint key16, first_at int, expires_at int
INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at)
SELECT :scope, key, fingerprint, 1, first_at, expires_at FROM rows WHERE true
ON CONFLICT (scope, key) DO NOTHING

-- name: past_cycles
-- rows: key key16
SELECT p.key, p.cycle FROM rows JOIN att_past p ON p.key = rows.key
