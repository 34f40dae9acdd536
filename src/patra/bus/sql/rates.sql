-- name: published_since
-- rows: event_type text
SELECT r.event_type, (SELECT count(*) FROM (SELECT 1 FROM bus_event e
    WHERE e.event_type = r.event_type AND e.published_at > :since AND e.body IS NOT NULL LIMIT :most) w) AS events
FROM rows r
