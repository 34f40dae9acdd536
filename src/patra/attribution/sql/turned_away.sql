-- name: write_turned_away
-- rows: key blob, code text, app_id text, batch_id text, first_at int, last_at int, count int, size int
INSERT INTO att_turned_away (key, code, app_id, batch_id, first_at, last_at, count, size)
SELECT key, code, app_id, batch_id, first_at, last_at, count, size FROM rows WHERE true
ON CONFLICT (key) DO UPDATE SET last_at = excluded.last_at, count = att_turned_away.count + excluded.count,
  size = CASE WHEN att_turned_away.size IS NULL OR excluded.size > att_turned_away.size
    THEN excluded.size ELSE att_turned_away.size END

-- name: turned_away_page
SELECT code, app_id, batch_id, first_at, last_at, count, size FROM att_turned_away
WHERE :code = '' OR code = :code ORDER BY last_at DESC, key LIMIT :limit

-- name: purge_turned_away
DELETE FROM att_turned_away WHERE key IN (
  SELECT key FROM att_turned_away WHERE last_at < :before ORDER BY last_at LIMIT :limit
)
