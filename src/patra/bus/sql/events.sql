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
UNION ALL
SELECT 'catalogue', version, digest, '', '' FROM bus_catalogue_in_force
UNION ALL
SELECT 'frozen', 0, f.reason, f.event_type, '' FROM rows JOIN bus_remote_freeze f ON f.event_type = rows.event_type
UNION ALL
SELECT 'remote', 0, digest, '', '' FROM bus_remote_catalogue
UNION ALL
SELECT 'stage', s.major, s.stage, s.event_type, s.share || ' ' || s.tenants
FROM rows JOIN bus_stage s ON s.event_type = rows.event_type WHERE s.stage IN ('shadow', 'dual')

-- name: event_insert
-- rows: event_id text, major int, minor int, event_type text, identity blob, fingerprint blob, producer text, tenant_id text, trace_id text, correlation_id text, order_key blob, body text, published_by text
INSERT INTO bus_event (event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id,
  correlation_id, order_key, published_at, published_by, body)
SELECT event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id,
  correlation_id, order_key, :now, NULLIF(published_by, ''), body FROM rows WHERE true
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

-- name: event_publishers
-- rows: event_id text
SELECT e.event_id, e.published_by FROM rows JOIN bus_event e ON e.event_id = rows.event_id
WHERE e.published_by IS NOT NULL

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
  detail, first_at, last_at, count, published_by)
SELECT refusal_key, event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place,
  detail, :now, :now, 1, NULLIF(:by, '') FROM rows WHERE true
ON CONFLICT (refusal_key) DO UPDATE SET last_at = excluded.last_at, count = bus_refusal.count + 1

-- name: refusals
SELECT event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place, detail, first_at, last_at, count, published_by
FROM bus_refusal r WHERE (:code = '' OR code = :code) AND (:tenant_id = '' OR tenant_id = :tenant_id)
  AND last_at < :before AND last_at >= COALESCE((
    -- Refusals of one instant stay on one page: the next one begins before it.
    SELECT last_at FROM bus_refusal WHERE (:code = '' OR code = :code) AND (:tenant_id = '' OR tenant_id = :tenant_id)
      AND last_at < :before ORDER BY last_at DESC LIMIT 1 OFFSET :limit - 1
  ), 0)
ORDER BY last_at DESC, refusal_key

-- name: refusals_by_event
SELECT event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place, detail, first_at, last_at, count, published_by
FROM bus_refusal WHERE event_id = :event_id AND (:tenant_id = '' OR tenant_id = :tenant_id)
UNION
SELECT event_id, event_type, producer, tenant_id, trace_id, idempotency_key, code, place, detail, first_at, last_at, count, published_by
FROM bus_refusal WHERE idempotency_key = :event_id AND (:tenant_id = '' OR tenant_id = :tenant_id) ORDER BY first_at

-- name: refusal_purge
DELETE FROM bus_refusal WHERE refusal_key IN (
  SELECT refusal_key FROM bus_refusal WHERE last_at < :before ORDER BY last_at LIMIT :limit
)

-- name: events_after
SELECT seq, event_type, published_at, body, published_by, event_id, tenant_id FROM bus_event
WHERE seq > :after AND (:event_type = '' OR event_type = :event_type)
ORDER BY seq LIMIT :limit

-- name: events_before
-- The log backwards, no further than a place: a filter that few events pass may not read all of it.
SELECT seq, event_type, published_at, body, published_by, event_id, tenant_id FROM bus_event
WHERE seq < :before AND seq >= :lowest AND body IS NOT NULL AND (:event_type = '' OR event_type = :event_type)
  AND (:tenant_id = '' OR tenant_id = :tenant_id)
ORDER BY seq DESC LIMIT :limit

-- name: events_of_type
-- The newest of a type that still have their body, by the index that keeps them; then those of one tenant and major.
SELECT seq, event_id, published_at FROM (
  SELECT seq, event_id, published_at, tenant_id, major FROM bus_event
  WHERE event_type = :event_type AND body IS NOT NULL ORDER BY published_at DESC LIMIT :scanned
) latest WHERE major = :major AND tenant_id = :tenant_id ORDER BY published_at DESC, seq DESC LIMIT :limit

-- name: event_bodies
-- rows: seq int
SELECT e.seq, e.body FROM rows JOIN bus_event e ON e.seq = rows.seq WHERE e.body IS NOT NULL

-- name: events_last
SELECT COALESCE(max(seq), 0) FROM bus_event

-- name: events_by_id
SELECT seq, event_type, published_at, body, published_by, event_id, tenant_id FROM bus_event
WHERE event_id = :key AND (:tenant_id = '' OR tenant_id = :tenant_id) ORDER BY seq

-- name: events_by_trace
SELECT seq, event_type, published_at, body, published_by, event_id, tenant_id FROM bus_event
WHERE trace_id = :key AND (:tenant_id = '' OR tenant_id = :tenant_id) ORDER BY seq LIMIT :limit

-- name: events_by_correlation
SELECT seq, event_type, published_at, body, published_by, event_id, tenant_id FROM bus_event
WHERE correlation_id = :key AND (:tenant_id = '' OR tenant_id = :tenant_id) ORDER BY seq LIMIT :limit

-- name: events_by_idempotency_key
-- rows: key text
-- The expression is that of the index; a key with a quotation mark or backslash is compared as its JSON has it.
SELECT e.seq, e.event_type, e.published_at, e.body, e.published_by, e.event_id, e.tenant_id FROM rows JOIN bus_event e ON
  substr(body, instr(body, '"idempotency_key":"') + 19, instr(substr(body, instr(body, '"idempotency_key":"') + 19), '"') - 1)
  = rows.key
WHERE e.body IS NOT NULL AND (:tenant_id = '' OR e.tenant_id = :tenant_id) ORDER BY e.seq LIMIT :limit

-- name: event_purge_page
SELECT seq, published_at FROM bus_event
WHERE event_type = :event_type AND body IS NOT NULL AND published_at >= :from_at AND published_at < :before
  AND (published_at > :from_at OR seq > :from_seq)
ORDER BY published_at, seq LIMIT :limit

-- name: event_key_page
SELECT seq, published_at FROM bus_event WHERE seq > :after AND seq < (SELECT max(seq) FROM bus_event) ORDER BY seq LIMIT :limit

-- name: event_key_purge
-- rows: seq int
-- Only rows whose body is gone: no group and no dead letter waited for it then, and none can since.
DELETE FROM bus_event WHERE seq IN (SELECT seq FROM rows) AND body IS NULL

-- name: event_purge
-- rows: seq int
UPDATE bus_event SET body = NULL WHERE seq IN (SELECT seq FROM rows)
  AND NOT EXISTS (SELECT 1 FROM bus_group g CROSS JOIN bus_delivery d WHERE d.group_id = g.group_id AND d.seq = bus_event.seq)
  AND NOT EXISTS (
    SELECT 1 FROM bus_dead_letter l WHERE l.event_id = bus_event.event_id AND l.state IN ('open', 'replaying')
  )
