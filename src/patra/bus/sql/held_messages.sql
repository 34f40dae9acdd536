-- name: held_messages_known
-- rows: event_type text, major int
SELECT h.held_id, h.position, h.body, h.published_by FROM rows JOIN bus_held_message h
  ON h.event_type = rows.event_type AND h.major = rows.major
WHERE h.stream = :stream ORDER BY h.held_id LIMIT :limit

-- name: held_messages_remove
-- rows: held_id int
DELETE FROM bus_held_message WHERE held_id IN (SELECT held_id FROM rows)

-- name: held_messages_counts
SELECT event_type, major, count(*) AS messages, min(held_at) AS oldest FROM bus_held_message
GROUP BY event_type, major ORDER BY event_type, major
