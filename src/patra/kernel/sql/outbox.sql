-- name: outbox_due
SELECT group_key, count(*) FROM (
  SELECT group_key FROM krn_outbox
  WHERE channel = :channel AND status = 'pending' AND due_at <= :now
  ORDER BY due_at, seq LIMIT :window
) AS due GROUP BY group_key

-- name: outbox_heads
-- rows: group_key blob
SELECT h.seq, h.due_at
FROM rows JOIN krn_outbox h ON h.seq = (
  SELECT o.seq FROM krn_outbox o
  WHERE +o.channel = :channel AND o.group_key = rows.group_key AND o.status = 'pending'
  ORDER BY o.seq LIMIT 1
)

-- name: outbox_hold
-- rows: seq int
UPDATE krn_outbox SET holder = :holder, due_at = :until
WHERE due_at <= :now AND status = 'pending' AND seq IN (
  SELECT o.seq FROM krn_outbox o WHERE o.seq IN (SELECT seq FROM rows) AND o.due_at <= :now ORDER BY o.seq {skip_locked}
)
RETURNING group_key, seq

-- name: outbox_lock_waiting
-- rows: seq int
SELECT o.group_key, o.seq FROM krn_outbox o
WHERE o.seq IN (SELECT seq FROM rows) AND o.status = 'pending' AND o.due_at > :now {skip_locked}

-- name: outbox_park
-- rows: group_key blob, seq int
UPDATE krn_outbox SET due_at = :until, holder = NULL FROM rows
WHERE krn_outbox.group_key = rows.group_key AND krn_outbox.seq > rows.seq AND krn_outbox.seq IN (
  SELECT o.seq FROM krn_outbox o
  WHERE o.channel = :channel AND o.status = 'pending' AND o.due_at <= :now
  ORDER BY o.due_at, o.seq LIMIT :window
)

-- name: outbox_messages
-- rows: group_key blob, seq int
SELECT o.seq, o.group_key, o.message_key, o.payload, o.appended_at, o.attempt, o.failed_at, o.due_at, o.holder
FROM rows JOIN krn_outbox o ON o.seq IN (
  SELECT e.seq FROM krn_outbox e
  WHERE +e.channel = :channel AND e.group_key = rows.group_key AND e.status = 'pending' AND e.seq >= rows.seq
  ORDER BY e.seq LIMIT :per_group
)

-- name: outbox_still_held
-- rows: seq int
SELECT o.seq, o.group_key FROM krn_outbox o WHERE o.seq IN (SELECT seq FROM rows) AND o.holder = :holder
ORDER BY o.seq {for_update}

-- name: outbox_delivered
-- rows: seq int
DELETE FROM krn_outbox WHERE seq IN (SELECT seq FROM rows)

-- name: outbox_failed
-- rows: seq int, due_at int, attempt int, failed_at int, reason text
UPDATE krn_outbox SET due_at = rows.due_at, attempt = rows.attempt, failed_at = rows.failed_at, reason = rows.reason,
  holder = NULL
FROM rows WHERE krn_outbox.seq = rows.seq

-- name: outbox_share_failure
-- rows: group_key blob, failed_at int
UPDATE krn_outbox SET failed_at = rows.failed_at FROM rows
WHERE krn_outbox.channel || '' = :channel AND krn_outbox.group_key = rows.group_key AND krn_outbox.status = 'pending'
  AND krn_outbox.failed_at IS NULL

-- name: outbox_ended
-- rows: seq int, status text, attempt int, failed_at int, reason text
UPDATE krn_outbox SET status = rows.status, attempt = rows.attempt, failed_at = rows.failed_at, reason = rows.reason,
  holder = NULL
FROM rows WHERE krn_outbox.seq = rows.seq

-- name: outbox_call_up
-- rows: group_key blob
UPDATE krn_outbox SET due_at = :now, holder = NULL
WHERE due_at > :now AND (holder IS NULL OR holder = :holder) AND seq IN (
  SELECT (
    SELECT o.seq FROM krn_outbox o
    WHERE +o.channel = :channel AND o.group_key = rows.group_key AND o.status = 'pending'
    ORDER BY o.seq LIMIT 1
  ) FROM rows
)

-- name: outbox_next_due
SELECT min(due_at) FROM krn_outbox WHERE channel = :channel AND status = 'pending'

-- name: outbox_backlog
SELECT channel, status, count(*), min(appended_at) FROM krn_outbox GROUP BY channel, status ORDER BY channel, status

-- name: outbox_backlog_up_to
WITH RECURSIVE channels(channel) AS (
  SELECT min(channel) FROM krn_outbox WHERE status = 'pending'
  UNION ALL
  SELECT (SELECT min(o.channel) FROM krn_outbox o WHERE o.status = 'pending' AND o.channel > c.channel)
  FROM channels c WHERE c.channel IS NOT NULL
)
SELECT c.channel, 'pending', (SELECT count(*) FROM (
  SELECT 1 FROM krn_outbox o INDEXED BY krn_outbox_due WHERE o.status = 'pending' AND o.channel = c.channel LIMIT :most) w)
FROM channels c WHERE c.channel IS NOT NULL
UNION ALL
SELECT d.channel, d.status, count(*) FROM (
  SELECT channel, status FROM krn_outbox INDEXED BY krn_outbox_dead WHERE status <> 'pending' LIMIT :most) d
GROUP BY d.channel, d.status

-- name: outbox_refused_since
SELECT channel, count(*), max(reason) FROM krn_outbox WHERE status <> 'pending' AND failed_at >= :since
GROUP BY channel ORDER BY channel

-- name: outbox_failing
-- By the index of what fails, one seek for each channel: no backlog hides a channel, and none is read.
WITH RECURSIVE channels(channel) AS (
  SELECT min(channel) FROM krn_outbox WHERE status = 'pending' AND failed_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(o.channel) FROM krn_outbox o
    WHERE o.status = 'pending' AND o.failed_at IS NOT NULL AND o.channel > c.channel)
  FROM channels c WHERE c.channel IS NOT NULL
)
SELECT c.channel, (SELECT min(o.failed_at) FROM krn_outbox o
  WHERE o.status = 'pending' AND o.failed_at IS NOT NULL AND o.channel = c.channel)
FROM channels c WHERE c.channel IS NOT NULL ORDER BY c.channel

-- name: outbox_dead
-- By the index of what is not pending: in the order of the primary key, all that is pending would be read.
SELECT channel, seq, message_key, status, reason, attempt, appended_at, failed_at FROM krn_outbox
WHERE (:channel = '' OR channel = :channel) AND status <> 'pending' AND +seq > :after ORDER BY +seq LIMIT :limit

-- name: outbox_waiting
SELECT seq, message_key, appended_at, due_at, attempt, failed_at, reason FROM krn_outbox
WHERE channel = :channel AND status = 'pending' ORDER BY due_at, seq LIMIT :limit

-- name: outbox_requeue
-- rows: seq int
UPDATE krn_outbox SET status = 'pending', due_at = :now, attempt = 0, failed_at = NULL, reason = NULL
FROM rows WHERE krn_outbox.seq = rows.seq AND krn_outbox.channel = :channel AND krn_outbox.status <> 'pending'
RETURNING krn_outbox.seq
