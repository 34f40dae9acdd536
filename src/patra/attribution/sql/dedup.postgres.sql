-- name: begin_keys
-- What is taken is left to the unique index to tell (`Tx.claim`): to look before inserting costs a fifth more.
INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at)
SELECT :scope, key, fingerprint, 1, first_at, expires_at FROM rows

-- name: past_cycles
-- As the kernel's ledger: LATERAL leaves PostgreSQL one lookup a key.
SELECT p.key, p.cycle
FROM rows CROSS JOIN LATERAL (SELECT * FROM att_past e WHERE e.key = rows.key LIMIT 1) p
