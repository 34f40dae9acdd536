-- name: settle_by_app
SELECT app_id, NULL, billable_type, count(*), NULL FROM att_settled
WHERE fact_hour >= :first AND fact_hour <= :last AND fact_at >= :begin AND fact_at < :end
GROUP BY app_id, billable_type

-- name: settle_by_day
SELECT NULL, fact_at / :day, billable_type, count(*), NULL FROM att_settled
WHERE fact_hour >= :first AND fact_hour <= :last AND fact_at >= :begin AND fact_at < :end
GROUP BY fact_at / :day, billable_type

-- name: settle_by_placement
-- Where no placement was carried, the opportunity is given instead: it may be among those that wait.
SELECT b.app_id, o.placement, b.billable_type, count(*), CASE WHEN o.placement IS NULL THEN b.opportunity END
FROM att_settled b LEFT JOIN att_opportunity o ON o.key = b.opportunity
WHERE b.fact_hour >= :first AND b.fact_hour <= :last AND b.fact_at >= :begin AND b.fact_at < :end
GROUP BY b.app_id, o.placement, b.billable_type, CASE WHEN o.placement IS NULL THEN b.opportunity END

-- name: waiting_placements
SELECT key, placement FROM att_placement ORDER BY decision_id

-- name: waiting_placements_of
-- rows: key blob
-- Of some opportunities, as far as the placements up to a decision are asked for. One pass over those that wait: they have
-- no tree by key, so that a commit only appends.
SELECT key, placement FROM att_placement WHERE decision_id <= :bound AND key IN (SELECT key FROM rows) ORDER BY decision_id

-- name: received_before
-- The newest batch received before. No tick: its instant is the deadline that it applies, which may be long over.
SELECT number FROM att_log WHERE at < :before AND kind <> 'tick' ORDER BY at DESC LIMIT 1

-- name: oldest_placement
SELECT min(decision_id) FROM att_placement

-- name: placements_between
SELECT key, placement FROM att_placement WHERE decision_id < :to AND key >= :low AND key < :high ORDER BY key, decision_id

-- name: carried_up_to
UPDATE att_mark SET value = :value WHERE name = 'placed_from' AND value = :was
  AND EXISTS (SELECT 1 FROM att_mark t WHERE t.name = 'placed_to' AND t.value = :to)

-- name: carry_placements
-- rows: key blob, placement blob
INSERT INTO att_opportunity (key, placement) SELECT key, placement FROM rows WHERE true ON CONFLICT (key) DO NOTHING

-- name: forget_placements
DELETE FROM att_placement WHERE decision_id IN (
  SELECT decision_id FROM att_placement WHERE decision_id < :to ORDER BY decision_id LIMIT :limit
)
