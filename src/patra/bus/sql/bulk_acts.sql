-- name: letter_causes_over_time
SELECT l.group_name, l.event_type, l.error_code, (l.last_failed_at - :since) / :step AS part, count(*)
FROM bus_dead_letter l
WHERE l.state = :state AND l.last_failed_at >= :since AND l.last_failed_at < :until
  AND (:group_name = '' OR l.group_name = :group_name) AND (:event_type = '' OR l.event_type = :event_type)
  AND (:error_code = '' OR l.error_code = :error_code) AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
GROUP BY 1, 2, 3, 4

-- name: letter_causes
SELECT group_name, event_type, error_code, error_detail, letters, first_failed_at, last_failed_at, replayed_before
FROM (
  SELECT l.group_name, l.event_type, l.error_code, l.error_detail, l.last_failed_at,
    count(*) OVER cause AS letters, min(l.first_failed_at) OVER cause AS first_failed_at,
    sum(CASE WHEN l.replay_count > 0 THEN 1 ELSE 0 END) OVER cause AS replayed_before,
    row_number() OVER (PARTITION BY l.group_name, l.event_type, l.error_code
      ORDER BY l.last_failed_at DESC, l.letter_id DESC) AS place
  FROM bus_dead_letter l
  WHERE l.state = :state AND (:group_name = '' OR l.group_name = :group_name)
    AND (:event_type = '' OR l.event_type = :event_type) AND (:error_code = '' OR l.error_code = :error_code)
    AND (:tenant_id = '' OR l.tenant_id = :tenant_id)
  WINDOW cause AS (PARTITION BY l.group_name, l.event_type, l.error_code)
) c WHERE place = 1 ORDER BY letters DESC, group_name, event_type, error_code LIMIT :limit

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
