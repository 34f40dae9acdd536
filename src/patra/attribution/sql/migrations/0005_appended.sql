-- Billable facts and placements in the order of decision, so that a commit writes a few pages at the end and not one a
-- row: a tree of random keys is filled behind the writer or not at all.

-- The facts that money is settled on: one row a billable fact, never changed but for the status of its record. A closure
-- has at most one of each type, and its row is what keeps it so. `fact_hour` finds a span of time: facts of one hour
-- stand in the order of decision.
ALTER TABLE att_billable RENAME TO att_billable_by_key;
DROP INDEX att_billable_at;
CREATE TABLE att_billable (
  decision_id BIGINT NOT NULL PRIMARY KEY,
  app_id TEXT NOT NULL,
  billable_type TEXT NOT NULL CHECK (billable_type = 'billable_impression' OR billable_type = 'billable_click'),
  opportunity {blob} NOT NULL,
  fact_hour BIGINT NOT NULL,
  fact_at BIGINT NOT NULL,
  status TEXT NOT NULL CHECK (status = 'committed' OR status = 'new' OR status = 'duplicate' OR status = 'conflicted' OR status = 'rejected' OR status = 'superseded')
) {without_rowid};
INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status)
SELECT decision_id, app_id, billable_type, opportunity,
  CASE WHEN fact_at < 0 THEN (fact_at - 3599999999) / 3600000000 ELSE fact_at / 3600000000 END, fact_at, status
FROM att_billable_by_key ORDER BY decision_id;
CREATE INDEX att_billable_hour ON att_billable (fact_hour);
DROP TABLE att_billable_by_key;

-- The placements of opportunities, as the newest decisions said them; carried into `att_opportunity` behind the writer.
CREATE TABLE att_placement (
  decision_id BIGINT NOT NULL PRIMARY KEY,
  key {blob} NOT NULL,
  placement {blob} NOT NULL
) {without_rowid};

-- The index finds billable facts too from now on: it is filled again.
DELETE FROM att_locator;
DELETE FROM att_gap;
UPDATE att_mark SET value = (SELECT coalesce(min(item) - 1, 0) FROM att_decision) WHERE name = 'indexed';
INSERT INTO att_mark (name, value) VALUES ('placed_to', 0), ('placed_from', 0);
