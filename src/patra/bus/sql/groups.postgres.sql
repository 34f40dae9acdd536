-- name: group_totals
-- In the order of an index: without it a group that has nothing costs a scan of all that waits for the others.
SELECT g.name, g.state, g.group_id,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d WHERE d.group_id = g.group_id ORDER BY d.seq LIMIT :most) w) AS waiting,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d WHERE d.group_id BETWEEN g.group_id AND g.group_id
    AND d.attempts > 0 AND d.state <> 'dead' ORDER BY d.group_id LIMIT :most) f) AS failing,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d WHERE d.group_id BETWEEN g.group_id AND g.group_id
    AND d.state = 'held' ORDER BY d.group_id LIMIT :most) h) AS held,
  (SELECT min(e.published_at) FROM bus_event e WHERE e.seq = (
    SELECT min(d.seq) FROM bus_delivery d WHERE d.group_id = g.group_id)) AS oldest,
  (SELECT count(*) FROM (VALUES ('open'), ('replaying')) s(state) CROSS JOIN LATERAL (
    SELECT 1 FROM bus_dead_letter l WHERE l.group_name = g.name AND l.state BETWEEN s.state AND s.state
    ORDER BY l.group_name, l.state LIMIT :most) l) AS dead
FROM bus_group g ORDER BY g.name
