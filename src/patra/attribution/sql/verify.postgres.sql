-- name: lines_at
-- LATERAL leaves PostgreSQL one lookup an instant, also where it would rather read the whole log.
SELECT l.at, l.number FROM rows
CROSS JOIN LATERAL (SELECT at, number FROM att_log e WHERE e.at = rows.at AND e.kind = 'batch' OFFSET 0) l

-- name: drop_counts
SELECT d.key, d.count FROM rows CROSS JOIN LATERAL (SELECT * FROM att_drop e WHERE e.key = rows.key LIMIT 1) d

-- name: rejects_between
SELECT decision_id, count(*), count(count), coalesce(sum(count), 0)::bigint, min(at), min(code), max(code), min(app_id), max(app_id),
  sum(CASE WHEN raw IS NULL AND field_path = 'responseReference' AND code <> 'f_closure_foreign_app' THEN 1 ELSE 0 END)::bigint
FROM att_reject WHERE decision_id >= :first AND decision_id <= :last GROUP BY decision_id

-- name: dropped_events
SELECT coalesce((SELECT max(number) FROM att_log), 0), coalesce((SELECT sum(count) FROM att_drop), 0)::bigint

-- name: items_without_a_line
SELECT d.item FROM att_decision d
LEFT JOIN LATERAL (SELECT number FROM att_log e WHERE e.number = d.item OFFSET 0) l ON true
WHERE d.item >= :first AND d.item <= :last AND l.number IS NULL AND d.at >= :since
