-- name: hops_purge
-- By an array of places, read once: a thousand keys cost more than all of a table that statistics hold for small.
DELETE FROM bus_hop WHERE ctid = ANY(ARRAY(SELECT ctid FROM bus_hop WHERE at < :before ORDER BY at LIMIT :limit))
