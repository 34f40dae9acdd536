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

-- name: groups_oldest_waiting
-- In the order of an index, and by a range of one value: else each group costs a scan of all that waits for the others.
SELECT g.name, d.state, d.replay, d.due_at, e.published_at
FROM bus_group g CROSS JOIN LATERAL (
  SELECT x.seq, x.state, x.replay, x.due_at FROM bus_delivery x
  WHERE x.group_id BETWEEN g.group_id AND g.group_id
    AND (x.state = 'ready' OR (x.state = 'waiting' AND x.due_at <= :now))
  ORDER BY x.group_id, x.seq LIMIT 1) d
CROSS JOIN LATERAL (SELECT published_at FROM bus_event o WHERE o.seq = d.seq LIMIT 1) e
WHERE g.state = 'active' ORDER BY g.name
