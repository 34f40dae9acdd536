-- Values that do not have a hash stay in the database: few have that of a rare key, and each is large.

-- name: runs_with_hash
SELECT body FROM att_locator WHERE bucket = :bucket AND position(:part IN body) > 0 ORDER BY run
