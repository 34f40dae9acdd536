-- name: append_recent
INSERT INTO att_recent (at, body) VALUES (:at, :body)

-- name: recent_keys
SELECT number, body FROM att_recent ORDER BY number

-- name: newest_recent
SELECT max(number) FROM att_recent

-- name: oldest_recent_at
SELECT at FROM att_recent ORDER BY number LIMIT 1

-- name: forget_recent
DELETE FROM att_recent WHERE number IN (SELECT number FROM att_recent WHERE number <= :last ORDER BY number LIMIT :limit)

-- name: some_key
SELECT 1 FROM krn_ledger WHERE scope = :scope LIMIT 1
