-- name: routing_lock_shared
SELECT 1

-- name: routing_lock
SELECT 1

-- name: routing
-- rows: event_type text
SELECT 'group', s.group_id, g.name, s.event_type, s.versions
FROM rows JOIN bus_subscription s ON s.event_type = rows.event_type JOIN bus_group g ON g.group_id = s.group_id
UNION ALL
SELECT 'frozen', 0, f.reason, f.event_type, '' FROM rows JOIN bus_freeze f ON f.event_type = rows.event_type
WHERE f.state <> 'open'

-- name: event_insert
-- rows: event_id text, major int, minor int, event_type text, identity blob, fingerprint blob, producer text, tenant_id text, trace_id text, correlation_id text, order_key blob, body text
INSERT INTO bus_event (event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id,
  correlation_id, order_key, published_at, body)
SELECT event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id,
  correlation_id, order_key, :now, body FROM rows WHERE true
ON CONFLICT DO NOTHING
RETURNING identity, major, seq

-- name: event_known
-- rows: identity blob
SELECT e.identity, e.event_id, e.major, e.fingerprint
FROM rows JOIN bus_event e ON e.identity = rows.identity

-- name: event_seqs
-- rows: event_id text, major int
SELECT e.event_id, e.major, e.seq, CASE WHEN e.body IS NULL THEN 1 ELSE 0 END
FROM rows JOIN bus_event e ON e.event_id = rows.event_id AND e.major = rows.major

-- name: event_refill
-- rows: event_id text, major int, fingerprint blob, body text
UPDATE bus_event SET body = rows.body FROM rows
WHERE bus_event.event_id = rows.event_id AND bus_event.major = rows.major
  AND bus_event.fingerprint = rows.fingerprint AND bus_event.body IS NULL

-- name: event_remove
-- rows: seq int
DELETE FROM bus_event WHERE seq IN (SELECT seq FROM rows)

-- name: delivery_insert
-- rows: group_id int, seq int, order_key blob
INSERT INTO bus_delivery (group_id, seq, order_key, due_at)
SELECT group_id, seq, order_key, :now FROM rows WHERE true
ON CONFLICT (group_id, seq) DO NOTHING

-- name: wake
SELECT 1

-- name: refusal_record
-- rows: refusal_key blob, event_id text, event_type text, producer text, tenant_id text, trace_id text, idempotency_key text, code text, place text, detail text
INSERT INTO bus_refusal (refusal_key, event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place,
  detail, first_at, last_at, count)
SELECT refusal_key, event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place,
  detail, :now, :now, 1 FROM rows WHERE true
ON CONFLICT (refusal_key) DO UPDATE SET last_at = excluded.last_at, count = bus_refusal.count + 1

-- name: refusals
SELECT event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place, detail, first_at, last_at, count
FROM bus_refusal WHERE (:code = '' OR code = :code) AND last_at < :before ORDER BY last_at DESC LIMIT :limit

-- name: refusals_by_event
SELECT event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place, detail, first_at, last_at, count
FROM bus_refusal WHERE event_id = :event_id OR idempotency_key = :event_id ORDER BY first_at

-- name: refusal_purge
DELETE FROM bus_refusal WHERE refusal_key IN (
  SELECT refusal_key FROM bus_refusal WHERE last_at < :before ORDER BY last_at LIMIT :limit
)

-- name: events_after
SELECT seq, event_type, published_at, body FROM bus_event
WHERE seq > :after AND (:event_type = '' OR event_type = :event_type)
ORDER BY seq LIMIT :limit

-- name: events_last
SELECT COALESCE(max(seq), 0) FROM bus_event

-- name: events_by_id
SELECT seq, event_type, published_at, body FROM bus_event WHERE event_id = :key ORDER BY seq

-- name: events_by_trace
SELECT seq, event_type, published_at, body FROM bus_event WHERE trace_id = :key ORDER BY seq LIMIT :limit

-- name: events_by_correlation
SELECT seq, event_type, published_at, body FROM bus_event WHERE correlation_id = :key ORDER BY seq LIMIT :limit

-- name: event_purge
UPDATE bus_event SET body = NULL WHERE seq IN (
  SELECT e.seq FROM bus_event e
  WHERE e.event_type = :event_type AND e.published_at < :before AND e.body IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM bus_delivery d WHERE d.seq = e.seq AND d.group_id IN (SELECT group_id FROM bus_group))
    AND NOT EXISTS (SELECT 1 FROM bus_dead_letter l WHERE l.event_id = e.event_id AND l.state IN ('open', 'replaying'))
  ORDER BY e.published_at LIMIT :limit
)
