-- name: item_at_or_after
SELECT item, at FROM att_decision WHERE item >= :item ORDER BY item LIMIT 1

-- name: last_item
SELECT coalesce(max(item), 0) FROM att_decision

-- name: items_before
SELECT item FROM att_decision WHERE item < :before ORDER BY item DESC LIMIT :limit

-- name: packs_before
SELECT item, archived, body FROM att_decision WHERE item < :before AND item > :after ORDER BY item DESC LIMIT :limit

-- name: newest_of_batch
-- Only those with decisions: a batch that was sent again has none, since its events are only counted.
SELECT l.number FROM att_log l WHERE l.batch_id = :batch_id AND l.kind = 'batch'
  AND EXISTS (SELECT 1 FROM att_decision d WHERE d.item = l.number) ORDER BY l.number DESC LIMIT :limit
