-- name: log_page
SELECT number, at, kind, body FROM att_log WHERE number > :after ORDER BY number LIMIT :limit

-- name: log_mark
SELECT value FROM att_mark WHERE name = :name

-- name: log_numbers
SELECT number FROM att_log WHERE number > :after
