-- Small tables lead: CROSS JOIN keeps SQLite in their order, and means nothing to PostgreSQL.

-- name: page_to_sum
-- How many facts the next page has, its last one, the first one that the archive has not answered for, and how many are not
-- committed.
SELECT count(*), max(decision_id), min(CASE WHEN status = 'new' THEN decision_id END),
  count(CASE WHEN status <> 'committed' THEN 1 END) FROM (
  SELECT decision_id, status FROM att_billable
  WHERE decision_id > :after AND decision_id <= :bound ORDER BY decision_id LIMIT :limit
) AS page

-- name: hour_facts_to_sum
SELECT fact_hour, app_id, billable_type, count(*) FROM att_billable
WHERE decision_id > :after AND decision_id <= :bound AND status = 'committed' GROUP BY fact_hour, app_id, billable_type

-- name: joins_by_hash
-- Only PostgreSQL: SQLite has no statistics here that could mislead it.
SELECT 1

-- name: placement_facts_to_sum
-- Summed in the database: one row a placement comes back, not one a fact. Of an opportunity that is not carried yet the
-- earliest of the placements that wait says, in one pass over those: they have no tree by key.
WITH page AS MATERIALIZED (
  SELECT b.fact_hour, b.app_id, b.billable_type, b.opportunity,
    (SELECT o.placement FROM att_opportunity o WHERE o.key = b.opportunity) AS placement
  FROM att_billable b WHERE b.decision_id > :after AND b.decision_id <= :bound AND b.status = 'committed'
), waiting AS MATERIALIZED (
  SELECT key, placement, min(decision_id) FROM att_placement
  WHERE decision_id <= :complete AND key IN (SELECT opportunity FROM page WHERE placement IS NULL) GROUP BY key
), placed AS (
  SELECT page.fact_hour, page.app_id, page.billable_type, page.opportunity,
    coalesce(page.placement, waiting.placement) AS placement
  FROM page LEFT JOIN waiting ON waiting.key = page.opportunity
)
SELECT fact_hour, app_id, billable_type, placement, CASE WHEN placement IS NULL THEN opportunity END, count(*)
FROM placed GROUP BY 1, 2, 3, 4, 5

-- name: facts_pending
SELECT decision_id FROM att_billable WHERE decision_id > :after AND decision_id <= :bound AND status <> 'committed'

-- name: some_fact_beyond
SELECT 1 FROM att_billable WHERE decision_id > :after ORDER BY decision_id LIMIT 1 OFFSET :skip

-- name: log_numbers_after
SELECT number FROM att_log WHERE number > :after ORDER BY number LIMIT :limit

-- name: commits_under_way
-- Only PostgreSQL: SQLite has one writer at a time, and numbers without gaps.
SELECT '' WHERE 1 = 0

-- name: add_to_hour_sums
-- rows: fact_hour int, app_id text, billable_type text, facts int
INSERT INTO att_sum_hour (fact_hour, app_id, billable_type, facts)
SELECT fact_hour, app_id, billable_type, facts FROM rows WHERE true
ON CONFLICT (fact_hour, app_id, billable_type) DO UPDATE SET facts = att_sum_hour.facts + excluded.facts

-- name: add_to_placement_sums
-- rows: fact_hour int, app_id text, billable_type text, placement blob, opportunity blob, facts int
INSERT INTO att_sum_placement (fact_hour, app_id, billable_type, placement, opportunity, facts)
SELECT fact_hour, app_id, billable_type, placement, opportunity, facts FROM rows WHERE true
ON CONFLICT (fact_hour, app_id, billable_type, placement, opportunity)
DO UPDATE SET facts = att_sum_placement.facts + excluded.facts

-- name: add_sum_pending
-- rows: decision_id int
INSERT INTO att_sum_pending (sums, decision_id) SELECT :sums, decision_id FROM rows WHERE true

-- name: sum_pending_committed
SELECT b.decision_id, b.fact_hour, b.app_id, b.billable_type, o.placement, CASE WHEN o.placement IS NULL THEN b.opportunity END
FROM att_sum_pending p CROSS JOIN att_billable b LEFT JOIN att_opportunity o ON o.key = b.opportunity
WHERE p.sums = :sums AND b.decision_id = p.decision_id AND b.status = 'committed' ORDER BY p.decision_id LIMIT :limit

-- name: take_sum_pending
-- rows: decision_id int
DELETE FROM att_sum_pending WHERE sums = :sums AND decision_id IN (SELECT decision_id FROM rows) RETURNING decision_id

-- name: sum_marks
SELECT value FROM att_mark WHERE name IN (:hour, :placement) ORDER BY name {for_update}

-- name: empty_sum_pending
DELETE FROM att_sum_pending

-- name: empty_sum_hour
DELETE FROM att_sum_hour

-- name: empty_sum_placement
DELETE FROM att_sum_placement

-- name: hour_sums_of_purged
INSERT INTO att_sum_hour (fact_hour, app_id, billable_type, facts)
SELECT fact_hour, app_id, billable_type, sum(facts) FROM att_sum_purged GROUP BY fact_hour, app_id, billable_type

-- name: placement_sums_of_purged
INSERT INTO att_sum_placement (fact_hour, app_id, billable_type, placement, opportunity, facts)
SELECT fact_hour, app_id, billable_type, placement, opportunity, facts FROM att_sum_purged

-- name: sums_by_app
SELECT app_id, 0, billable_type, sum(facts) FROM att_sum_hour
WHERE fact_hour >= :first AND fact_hour < :last GROUP BY app_id, billable_type

-- name: sums_by_day
SELECT '', fact_hour / 24, billable_type, sum(facts) FROM att_sum_hour
WHERE fact_hour >= :first AND fact_hour < :last GROUP BY fact_hour / 24, billable_type

-- name: sums_by_placement
-- Where no placement is known, the opportunity is given instead: it may be among those that wait. Few sums have one, and
-- each is looked up by its key: joined, the tree of all opportunities could be read for them.
SELECT app_id, placement, billable_type, sum(facts), NULL FROM att_sum_placement
WHERE fact_hour >= :first AND fact_hour < :last AND length(opportunity) = 0 GROUP BY app_id, placement, billable_type
UNION ALL
SELECT f.app_id, f.placement, f.billable_type, sum(f.facts), CASE WHEN f.placement IS NULL THEN f.opportunity END
FROM (
  SELECT s.app_id, s.billable_type, s.facts, s.opportunity,
    (SELECT o.placement FROM att_opportunity o WHERE o.key = s.opportunity) AS placement
  FROM att_sum_placement s WHERE s.fact_hour >= :first AND s.fact_hour < :last AND length(s.opportunity) > 0
) f
GROUP BY f.app_id, f.placement, f.billable_type, CASE WHEN f.placement IS NULL THEN f.opportunity END

-- name: unsummed_by_hour
-- Facts of whole hours that count and are in no sum: those past the mark, and those that were not committed when the sums
-- reached them. `+ 0`: found by number, not by hour.
SELECT app_id, fact_hour, billable_type, count(*) FROM att_settled
WHERE decision_id > :mark AND fact_hour + 0 >= :first AND fact_hour + 0 < :last
GROUP BY app_id, fact_hour, billable_type
UNION ALL
SELECT b.app_id, b.fact_hour, b.billable_type, count(*)
FROM att_sum_pending p CROSS JOIN att_billable b
WHERE b.decision_id = p.decision_id AND p.sums = :sums AND b.status = 'committed' AND b.fact_hour + 0 >= :first AND b.fact_hour + 0 < :last
GROUP BY b.app_id, b.fact_hour, b.billable_type

-- name: unsummed_by_placement
SELECT f.app_id, o.placement, f.billable_type, count(*), CASE WHEN o.placement IS NULL THEN f.opportunity END
FROM (
  SELECT app_id, billable_type, opportunity FROM att_settled
  WHERE decision_id > :mark AND fact_hour + 0 >= :first AND fact_hour + 0 < :last
  UNION ALL
  SELECT b.app_id, b.billable_type, b.opportunity
  FROM att_sum_pending p CROSS JOIN att_billable b
  WHERE b.decision_id = p.decision_id AND p.sums = :sums AND b.status = 'committed' AND b.fact_hour + 0 >= :first AND b.fact_hour + 0 < :last
) f LEFT JOIN att_opportunity o ON o.key = f.opportunity
GROUP BY f.app_id, o.placement, f.billable_type, CASE WHEN o.placement IS NULL THEN f.opportunity END

-- name: wrongly_summed
-- Committed facts up to the mark that do not count: of a key that was billed before, and clicks whose impression is lost.
SELECT b.app_id, b.fact_hour, b.billable_type, b.opportunity, o.placement, b.decision_id
FROM att_billed_twice t CROSS JOIN att_billable b LEFT JOIN att_opportunity o ON o.key = b.opportunity
WHERE b.decision_id = t.decision_id AND b.decision_id <= :mark AND b.status = 'committed' AND b.fact_hour + 0 >= :first AND b.fact_hour + 0 < :last
UNION
SELECT b.app_id, b.fact_hour, b.billable_type, b.opportunity, o.placement, b.decision_id
FROM att_lost_impression l CROSS JOIN att_billing_key k CROSS JOIN att_billable b
LEFT JOIN att_opportunity o ON o.key = b.opportunity
WHERE k.closure = l.closure AND k.billable_type = 'billable_click' AND b.decision_id = k.decision_id
  AND b.decision_id <= :mark AND b.status = 'committed' AND b.fact_hour + 0 >= :first AND b.fact_hour + 0 < :last

-- name: uncounted
SELECT status, count(*) FROM (
  SELECT status FROM att_billable
  WHERE decision_id > :mark AND status <> 'committed' AND fact_at >= :begin AND fact_at < :end
  UNION ALL
  SELECT b.status FROM att_sum_pending p CROSS JOIN att_billable b
  WHERE b.decision_id = p.decision_id AND p.sums = :sums AND b.status <> 'committed' AND b.fact_at >= :begin AND b.fact_at < :end
) AS found GROUP BY status

-- name: uncounted_clicks
-- SQLite: by the tree, and of those that it has not reached by looking them through.
SELECT (
  SELECT count(*) FROM att_lost_impression l CROSS JOIN att_billing_key k CROSS JOIN att_billable b
  WHERE k.closure = l.closure AND k.billable_type = 'billable_click' AND b.decision_id = k.decision_id
    AND b.status = 'committed' AND b.fact_at >= :begin AND b.fact_at < :end
) + (
  SELECT count(*) FROM att_billable b
  WHERE b.decision_id > (SELECT value FROM att_mark WHERE name = 'billing_keyed') AND b.status = 'committed'
    AND b.billable_type = 'billable_click' AND b.fact_at >= :begin AND b.fact_at < :end
    AND b.closure IN (SELECT closure FROM att_lost_impression)
)

-- name: hour_sums_differ
-- Sums that are not what the facts come to, with both counts.
SELECT fact_hour, app_id, billable_type, sum(summed), sum(counted) FROM (
  SELECT fact_hour, app_id, billable_type, facts AS summed, 0 AS counted FROM att_sum_hour
  UNION ALL
  SELECT fact_hour, app_id, billable_type, 0, count(*) FROM att_billable
  WHERE decision_id <= (SELECT value FROM att_mark WHERE name = 'summed_hour')
    AND decision_id NOT IN (SELECT decision_id FROM att_sum_pending WHERE sums = 'hour')
  GROUP BY fact_hour, app_id, billable_type
  UNION ALL
  SELECT fact_hour, app_id, billable_type, 0, facts FROM att_sum_purged
) AS both_sides GROUP BY fact_hour, app_id, billable_type HAVING sum(summed) <> sum(counted) LIMIT :limit

-- name: placement_sums_differ
-- The placement of an opportunity is the one that was carried, or else the earliest of those that wait.
WITH placed AS (
  SELECT key, placement FROM att_opportunity
  UNION ALL
  SELECT key, placement FROM (
    SELECT key, placement, row_number() OVER (PARTITION BY key ORDER BY decision_id) AS place FROM att_placement
  ) AS waiting WHERE place = 1 AND NOT EXISTS (SELECT 1 FROM att_opportunity o WHERE o.key = waiting.key)
)
SELECT fact_hour, app_id, billable_type, sum(summed), sum(counted) FROM (
  SELECT s.fact_hour, s.app_id, s.billable_type, s.facts AS summed, 0 AS counted,
    CASE WHEN length(s.opportunity) = 0 THEN s.placement ELSE o.placement END AS place
  FROM att_sum_placement s LEFT JOIN placed o ON o.key = s.opportunity
  UNION ALL
  SELECT b.fact_hour, b.app_id, b.billable_type, 0, 1, o.placement
  FROM att_billable b LEFT JOIN placed o ON o.key = b.opportunity
  WHERE b.decision_id <= (SELECT value FROM att_mark WHERE name = 'summed_placement')
    AND b.decision_id NOT IN (SELECT decision_id FROM att_sum_pending WHERE sums = 'placement')
  UNION ALL
  SELECT s.fact_hour, s.app_id, s.billable_type, 0, s.facts,
    CASE WHEN length(s.opportunity) = 0 THEN s.placement ELSE o.placement END
  FROM att_sum_purged s LEFT JOIN placed o ON o.key = s.opportunity
) AS both_sides GROUP BY fact_hour, app_id, billable_type, place HAVING sum(summed) <> sum(counted) LIMIT :limit

-- name: uncommitted_summed
-- Facts that a sum holds although no archive has their record.
SELECT b.decision_id FROM att_billable b
WHERE b.status <> 'committed' AND b.decision_id <= (SELECT value FROM att_mark WHERE name = :mark)
  AND b.decision_id NOT IN (SELECT decision_id FROM att_sum_pending WHERE sums = :sums) LIMIT :limit
