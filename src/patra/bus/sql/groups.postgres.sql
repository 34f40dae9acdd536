-- name: group_totals
SELECT g.name, g.state, g.group_id,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d WHERE d.group_id = g.group_id LIMIT :most) w) AS waiting,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d
    WHERE d.group_id = g.group_id AND d.attempts > 0 AND d.state <> 'dead' LIMIT :most) f) AS failing,
  (SELECT count(*) FROM (SELECT 1 FROM bus_delivery d WHERE d.group_id = g.group_id AND d.state = 'held' LIMIT :most) h) AS held,
  (SELECT min(e.published_at) FROM bus_event e WHERE e.seq = (
    SELECT min(d.seq) FROM bus_delivery d WHERE d.group_id = g.group_id)) AS oldest,
  (SELECT count(*) FROM bus_dead_letter l WHERE l.group_name = g.name AND l.state IN ('open', 'replaying')) AS dead
FROM bus_group g ORDER BY g.name
