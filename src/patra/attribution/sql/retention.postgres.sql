-- name: purge_rejects
-- By an array of places, read once: a thousand keys cost more than all of a table that statistics hold for small.
DELETE FROM att_reject WHERE ctid = ANY(ARRAY(SELECT ctid FROM att_reject WHERE at < :before ORDER BY at LIMIT :limit))
