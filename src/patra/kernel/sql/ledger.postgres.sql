-- PostgreSQL would rather join, and read the whole scope where it knows nothing of the table's contents yet: LATERAL, and a
-- scope that it cannot see through (OFFSET 0), leave it one lookup a key.

-- name: ledger_entries
SELECT l.key, l.fingerprint, l.cycle, l.first_at, l.expires_at, l.held_until, l.holder
FROM rows CROSS JOIN LATERAL (SELECT * FROM krn_ledger e WHERE e.scope = :scope AND e.key = rows.key LIMIT 1) l

-- name: ledger_settle
UPDATE krn_ledger SET held_until = NULL, holder = NULL
FROM (SELECT :scope::text AS scope, key FROM rows OFFSET 0) mine
WHERE krn_ledger.scope = mine.scope AND krn_ledger.key = mine.key AND krn_ledger.holder = :holder
RETURNING krn_ledger.key

-- name: ledger_release
UPDATE krn_ledger SET held_until = :long_ago, holder = NULL
FROM (SELECT :scope::text AS scope, key FROM rows OFFSET 0) mine
WHERE krn_ledger.scope = mine.scope AND krn_ledger.key = mine.key AND krn_ledger.holder = :holder
RETURNING krn_ledger.key
