-- name: ledger_claim
-- rows: key blob, fingerprint blob, expires_at int
INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at, held_until, holder)
SELECT :scope, key, fingerprint, 1, :now, expires_at, :held_until, :holder FROM rows WHERE true
ON CONFLICT (scope, key) DO UPDATE SET
  fingerprint = excluded.fingerprint,
  cycle = krn_ledger.cycle + CASE WHEN krn_ledger.held_until < :now THEN 0 ELSE 1 END,
  first_at = excluded.first_at,
  expires_at = excluded.expires_at,
  held_until = excluded.held_until,
  holder = excluded.holder
WHERE krn_ledger.expires_at < :now OR krn_ledger.held_until < :now
RETURNING key, cycle

-- name: ledger_entries
-- rows: key key16
SELECT l.key, l.fingerprint, l.cycle, l.first_at, l.expires_at, l.held_until, l.holder
FROM rows JOIN krn_ledger l ON l.scope = :scope AND l.key = rows.key

-- name: ledger_begin_cycle
-- rows: key blob, fingerprint blob, cycle int, first_at int, expires_at int
INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at, held_until, holder)
SELECT :scope, key, fingerprint, cycle, first_at, expires_at, NULL, NULL FROM rows WHERE true
ON CONFLICT (scope, key) DO UPDATE SET
  fingerprint = excluded.fingerprint, cycle = excluded.cycle, first_at = excluded.first_at,
  expires_at = excluded.expires_at, held_until = NULL, holder = NULL
WHERE CASE WHEN krn_ledger.held_until < excluded.first_at
  THEN krn_ledger.cycle = excluded.cycle
  ELSE krn_ledger.cycle = excluded.cycle - 1 AND krn_ledger.expires_at < excluded.first_at
END

-- name: ledger_settle
-- rows: key blob
UPDATE krn_ledger SET held_until = NULL, holder = NULL FROM rows
WHERE krn_ledger.scope = :scope AND krn_ledger.key = rows.key AND krn_ledger.holder = :holder
RETURNING krn_ledger.key

-- name: ledger_release
-- rows: key blob
UPDATE krn_ledger SET held_until = :long_ago, holder = NULL FROM rows
WHERE krn_ledger.scope = :scope AND krn_ledger.key = rows.key AND krn_ledger.holder = :holder
RETURNING krn_ledger.key

-- name: ledger_purge
-- A WITH: PostgreSQL may run a subquery of IN several times, each time past its LIMIT.
WITH late AS (
  SELECT key FROM krn_ledger
  WHERE scope = :scope AND expires_at < :before AND (held_until IS NULL OR held_until < :before)
  ORDER BY expires_at LIMIT :limit {skip_locked}
)
DELETE FROM krn_ledger WHERE scope = :scope AND key IN (SELECT key FROM late)
