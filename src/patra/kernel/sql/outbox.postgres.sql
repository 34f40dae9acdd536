-- While PostgreSQL knows nothing of the contents yet (which is often, of a queue), it holds krn_outbox_due for as good a way to a
-- group as krn_outbox_in_group, and reads the whole channel for each group: a channel that it cannot see through leaves it no
-- choice.

-- name: outbox_heads
-- rows: group_key blob
SELECT h.seq, h.due_at
FROM rows CROSS JOIN LATERAL (
  SELECT o.seq, o.due_at FROM krn_outbox o
  WHERE o.channel || '' = :channel AND o.group_key = rows.group_key AND o.status = 'pending'
  ORDER BY o.seq LIMIT 1
) h

-- name: outbox_messages
-- rows: group_key blob, seq int
SELECT o.seq, o.group_key, o.message_key, o.payload, o.appended_at, o.attempt, o.failed_at, o.due_at, o.holder
FROM rows CROSS JOIN LATERAL (
  SELECT * FROM krn_outbox e
  WHERE e.channel || '' = :channel AND e.group_key = rows.group_key AND e.status = 'pending' AND e.seq >= rows.seq
  ORDER BY e.seq LIMIT :per_group
) o

-- name: outbox_call_up
-- rows: group_key blob
UPDATE krn_outbox SET due_at = :now, holder = NULL
FROM (
  SELECT h.seq FROM rows CROSS JOIN LATERAL (
    SELECT o.seq FROM krn_outbox o
    WHERE o.channel || '' = :channel AND o.group_key = rows.group_key AND o.status = 'pending'
    ORDER BY o.seq LIMIT 1
  ) h
) heads
WHERE krn_outbox.seq = heads.seq AND krn_outbox.due_at > :now
  AND (krn_outbox.holder IS NULL OR krn_outbox.holder = :holder)

-- name: outbox_backlog_up_to
-- In the order of an index, and by a range of one value: else what waits for one channel is counted by reading that of all.
WITH RECURSIVE channels(channel) AS (
  SELECT min(channel) FROM krn_outbox WHERE status = 'pending'
  UNION ALL
  SELECT (SELECT min(o.channel) FROM krn_outbox o WHERE o.status = 'pending' AND o.channel > c.channel)
  FROM channels c WHERE c.channel IS NOT NULL
)
SELECT c.channel, 'pending', (SELECT count(*) FROM (
  SELECT 1 FROM krn_outbox o WHERE o.status = 'pending' AND o.channel BETWEEN c.channel AND c.channel
  ORDER BY o.channel, o.due_at LIMIT :most) w)
FROM channels c WHERE c.channel IS NOT NULL
UNION ALL
SELECT d.channel, d.status, count(*) FROM (
  SELECT channel, status FROM krn_outbox WHERE status <> 'pending' ORDER BY channel, seq LIMIT :most) d
GROUP BY d.channel, d.status

-- name: outbox_refused_since
-- In the order of the index of what is not pending, up to a bound that the planner does not know: with statistics of a time when
-- much was refused, it reads the whole outbox.
SELECT d.channel, count(*), max(d.reason) FROM (
  SELECT channel, reason, failed_at FROM krn_outbox WHERE status <> 'pending'
  ORDER BY channel, seq LIMIT (SELECT 9223372036854775807)) d
WHERE d.failed_at >= :since GROUP BY d.channel ORDER BY d.channel
