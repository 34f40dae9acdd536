-- name: routing_lock_shared
SELECT pg_advisory_xact_lock_shared(7026818)

-- name: routing_lock
SELECT pg_advisory_xact_lock(7026818)

-- name: delivery_insert
INSERT INTO bus_delivery (group_id, seq, order_key, due_at)
SELECT group_id, seq, order_key, :now FROM rows WHERE true
ON CONFLICT (group_id, seq) DO NOTHING
RETURNING (SELECT pg_notify('patra_bus', '')) IS NULL

-- name: wake
SELECT pg_notify('patra_bus', :topic)

-- name: events_by_idempotency_key
-- Each key by the index, whatever statistics say of the table: OFFSET 0 keeps the look-up as it is written.
SELECT e.seq, e.event_type, e.published_at, e.body, e.published_by, e.event_id, e.tenant_id FROM rows CROSS JOIN LATERAL (
  SELECT * FROM bus_event f
  WHERE split_part(split_part(f.body, '"idempotency_key":"', 2), '"', 1) = rows.key AND f.body IS NOT NULL OFFSET 0
) e
WHERE :tenant_id = '' OR e.tenant_id = :tenant_id ORDER BY e.seq LIMIT :limit

-- name: event_purge
-- Each line and dead letter by its key: joined as sets, all that waits would be read for every page. OFFSET 0 keeps a
-- subquery as it stands.
UPDATE bus_event SET body = NULL WHERE seq IN (SELECT seq FROM rows)
  AND NOT EXISTS (
    SELECT 1 FROM bus_group g CROSS JOIN LATERAL (
      SELECT 1 FROM bus_delivery d WHERE d.group_id = g.group_id AND d.seq = bus_event.seq LIMIT 1
    ) w OFFSET 0
  )
  AND NOT EXISTS (
    SELECT 1 FROM bus_dead_letter l WHERE l.event_id = bus_event.event_id AND l.state IN ('open', 'replaying') OFFSET 0
  )
