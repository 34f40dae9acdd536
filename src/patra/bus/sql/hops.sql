-- name: hops_record
-- rows: event_id text, group_name text, what text, done_by text, detail text
INSERT INTO bus_hop (event_id, group_name, what, at, done_by, detail)
SELECT event_id, group_name, what, :now, done_by, detail FROM rows

-- name: hops_of_events
-- rows: event_id text
SELECT h.event_id, h.group_name, h.what, h.at, h.done_by, h.detail FROM rows JOIN bus_hop h ON h.event_id = rows.event_id
ORDER BY h.hop_id LIMIT :limit

-- name: hops_purge
DELETE FROM bus_hop WHERE hop_id IN (SELECT hop_id FROM bus_hop WHERE at < :before ORDER BY at LIMIT :limit)
