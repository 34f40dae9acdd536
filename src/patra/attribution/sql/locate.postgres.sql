-- Values that do not have a hash stay in the database: few have that of a rare key, and each is large.

-- name: runs_with_hash
SELECT body FROM att_locator WHERE bucket = :bucket AND position(:part IN body) > 0 ORDER BY run

-- What the log says of an item is looked up by its number. As a join PostgreSQL reads the log from its first line on, with
-- statistics and without, for each run of the index.

-- name: fresh_items
SELECT d.item, d.at, d.body, l.batch_id
FROM (SELECT item, at, body FROM att_decision WHERE item > :after ORDER BY item LIMIT :limit) d
LEFT JOIN LATERAL (SELECT batch_id FROM att_log e WHERE e.number = d.item OFFSET 0) l ON true
ORDER BY d.item

-- name: gaps_filled
SELECT g.item, d.at, d.body, l.batch_id
FROM att_gap g CROSS JOIN LATERAL (SELECT at, body FROM att_decision e WHERE e.item = g.item OFFSET 0) d
LEFT JOIN LATERAL (SELECT batch_id FROM att_log e WHERE e.number = g.item OFFSET 0) l ON true
ORDER BY g.item
