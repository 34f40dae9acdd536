-- Billable facts and placements by number. A table WITHOUT ROWID is an index to SQLite, and it evens the last pages of
-- one out with every few rows that are appended; a table by number it lets grow at its end.

ALTER TABLE att_billable RENAME TO att_billable_before;
DROP INDEX att_billable_hour;
CREATE TABLE att_billable (
  decision_id INTEGER PRIMARY KEY,
  app_id TEXT NOT NULL,
  billable_type TEXT NOT NULL CHECK (billable_type = 'billable_impression' OR billable_type = 'billable_click'),
  opportunity {blob} NOT NULL,
  fact_hour BIGINT NOT NULL,
  fact_at BIGINT NOT NULL,
  status TEXT NOT NULL CHECK (status = 'committed' OR status = 'new' OR status = 'duplicate' OR status = 'conflicted' OR status = 'rejected' OR status = 'superseded')
);
INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status)
SELECT decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status
FROM att_billable_before ORDER BY decision_id;
CREATE INDEX att_billable_hour ON att_billable (fact_hour);
DROP TABLE att_billable_before;

ALTER TABLE att_placement RENAME TO att_placement_before;
CREATE TABLE att_placement (
  decision_id INTEGER PRIMARY KEY,
  key {blob} NOT NULL,
  placement {blob} NOT NULL
);
INSERT INTO att_placement (decision_id, key, placement)
SELECT decision_id, key, placement FROM att_placement_before ORDER BY decision_id;
DROP TABLE att_placement_before;
