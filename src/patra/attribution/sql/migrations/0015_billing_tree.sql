-- The last line of defence on SQLite: a unique tree of billing keys, filled behind the writer in the order of decision.
-- A fact whose key is taken already goes into `att_billed_twice`, is an alert, and is never settled.
CREATE TABLE att_billing_key (
  closure {blob} NOT NULL,
  billable_type TEXT NOT NULL,
  decision_id BIGINT NOT NULL,
  PRIMARY KEY (closure, billable_type)
) {without_rowid};
CREATE TABLE att_billed_twice (
  decision_id BIGINT NOT NULL PRIMARY KEY,
  first_id BIGINT NOT NULL,
  found_at BIGINT NOT NULL
);
INSERT INTO att_mark (name, value) VALUES ('billing_keyed', -1);

-- What settlement counts: taken by the archive, a click only with its impression, and the first of its billing key. Of
-- facts that the tree has not reached, the first of each key that is not in the tree.
CREATE VIEW att_settled AS
SELECT b.decision_id, b.app_id, b.billable_type, b.opportunity, b.fact_hour, b.fact_at, b.closure FROM att_billable b
WHERE b.status = 'committed'
  AND (b.billable_type <> 'billable_click' OR b.closure IS NULL
    OR b.closure NOT IN (SELECT closure FROM att_lost_impression))
  AND b.decision_id NOT IN (SELECT decision_id FROM att_billed_twice)
  AND (b.closure IS NULL OR b.decision_id <= (SELECT value FROM att_mark WHERE name = 'billing_keyed')
    OR (b.decision_id IN (
        SELECT min(t.decision_id) FROM att_billable t
        WHERE t.decision_id > (SELECT value FROM att_mark WHERE name = 'billing_keyed')
        GROUP BY t.closure, t.billable_type)
      AND NOT EXISTS (
        SELECT 1 FROM att_billing_key k WHERE k.closure = b.closure AND k.billable_type = b.billable_type)));
