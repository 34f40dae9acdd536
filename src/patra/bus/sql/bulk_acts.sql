-- name: letter_causes
-- One walk for all of it: by cause, and by the part of the time in which its dead letters failed last; -1 is before it.
SELECT l.group_name, l.event_type, l.error_code,
  CASE WHEN l.last_failed_at >= :since THEN (l.last_failed_at - :since) / :step ELSE -1 END AS part,
  count(*), min(l.first_failed_at), max(l.last_failed_at), sum(CASE WHEN l.replay_count > 0 THEN 1 ELSE 0 END)
FROM bus_dead_letter l
WHERE l.state = :state AND (:group_name = '' OR l.group_name = :group_name)
  AND (:event_type = '' OR l.event_type = :event_type) AND (:error_code = '' OR l.error_code = :error_code)
  AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
GROUP BY 1, 2, 3, 4

-- name: letter_cause_details
-- rows: group_name text, event_type text, error_code text, last_failed_at int
SELECT l.group_name, l.event_type, l.error_code, l.error_detail
FROM rows JOIN bus_dead_letter l ON l.state = :state AND l.last_failed_at = rows.last_failed_at
  AND l.group_name = rows.group_name AND l.event_type = rows.event_type AND l.error_code = rows.error_code
WHERE :tenant_id = '' OR l.tenant_id = :tenant_id ORDER BY l.letter_id

-- name: bulk_letters_count
SELECT count(*), COALESCE(sum(CASE WHEN l.replay_count > 0 THEN 1 ELSE 0 END), 0) FROM bus_dead_letter l
WHERE l.state = 'open' AND l.group_name = :group_name AND (:event_type = '' OR l.event_type = :event_type)
  AND (:error_code = '' OR l.error_code = :error_code)

-- name: bulk_letters_fix
INSERT INTO bus_bulk_letter (act_id, letter_id)
SELECT :act_id, l.letter_id FROM bus_dead_letter l
WHERE l.state = 'open' AND l.group_name = :group_name AND (:event_type = '' OR l.event_type = :event_type)
  AND (:error_code = '' OR l.error_code = :error_code) AND l.last_failed_at < :failed_to

-- name: bulk_running
SELECT act_id FROM bus_bulk_act WHERE state = 'running' ORDER BY begun_at, act_id LIMIT 1

-- name: bulk_act
SELECT act_id, kind, group_name, event_type, error_code, done_by, why, begun_at, ended_at, state, total, moved, refused,
  last_letter, last_code FROM bus_bulk_act WHERE act_id = :act_id

-- name: bulk_act_locked
SELECT act_id, kind, group_name, event_type, error_code, done_by, why, begun_at, ended_at, state, total, moved, refused,
  last_letter, last_code FROM bus_bulk_act WHERE act_id = :act_id {for_update}

-- name: bulk_acts
SELECT act_id, kind, group_name, event_type, error_code, done_by, why, begun_at, ended_at, state, total, moved, refused,
  last_letter, last_code FROM bus_bulk_act
WHERE begun_at < :before_at OR (begun_at = :before_at AND act_id < :before_id)
ORDER BY begun_at DESC, act_id DESC LIMIT :limit

-- name: bulk_batch
SELECT letter_id FROM bus_bulk_letter WHERE act_id = :act_id AND letter_id > :after ORDER BY letter_id LIMIT :limit

-- name: bulk_advance
UPDATE bus_bulk_act SET moved = moved + :moved, refused = refused + :refused, last_letter = :last,
  last_code = CASE WHEN :code = '' THEN last_code ELSE :code END WHERE act_id = :act_id

-- name: bulk_end
UPDATE bus_bulk_act SET state = :state, ended_at = :now WHERE act_id = :act_id AND state = 'running'

-- name: bulk_states
SELECT l.state, count(*) FROM bus_bulk_letter b JOIN bus_dead_letter l ON l.letter_id = b.letter_id
WHERE b.act_id = :act_id AND b.letter_id <= :last GROUP BY l.state

-- name: bulk_new_since
SELECT count(*) FROM bus_dead_letter l
WHERE l.state = 'open' AND l.last_failed_at > :since AND l.group_name = :group_name
  AND (:event_type = '' OR l.event_type = :event_type) AND (:error_code = '' OR l.error_code = :error_code)
