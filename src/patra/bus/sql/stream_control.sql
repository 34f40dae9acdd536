-- name: store_id
SELECT store_id FROM bus_store

-- name: remote_freeze_remove
DELETE FROM bus_remote_freeze WHERE event_type = :event_type AND (:store_id = '' OR store_id = :store_id)

-- name: remote_freeze_set
INSERT INTO bus_remote_freeze (event_type, store_id, reason, since) VALUES (:event_type, :store_id, :reason, :since)
ON CONFLICT (event_type, store_id) DO UPDATE SET reason = excluded.reason, since = excluded.since

-- name: remote_catalogue_set
INSERT INTO bus_remote_catalogue (store_id, digest, content, adopted_at) VALUES (:store_id, :digest, :content, :now)
ON CONFLICT (store_id) DO UPDATE SET digest = excluded.digest, content = excluded.content, adopted_at = excluded.adopted_at

-- name: remote_catalogue
SELECT content FROM bus_remote_catalogue WHERE digest = :digest LIMIT 1
