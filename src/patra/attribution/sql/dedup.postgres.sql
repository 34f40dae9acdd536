-- As the kernel's ledger: LATERAL leaves PostgreSQL one lookup a key.

-- name: past_cycles
SELECT p.key, p.cycle
FROM rows CROSS JOIN LATERAL (SELECT * FROM att_past e WHERE e.key = rows.key LIMIT 1) p
