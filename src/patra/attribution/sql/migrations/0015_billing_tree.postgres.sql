-- On PostgreSQL the unique index of `att_billable` refuses a second fact in the writing transaction: the tables stay empty.
CREATE TABLE att_billing_key (
  closure {blob} NOT NULL,
  billable_type TEXT NOT NULL,
  decision_id BIGINT NOT NULL,
  PRIMARY KEY (closure, billable_type)
);
CREATE TABLE att_billed_twice (
  decision_id BIGINT NOT NULL PRIMARY KEY,
  first_id BIGINT NOT NULL,
  found_at BIGINT NOT NULL
);
INSERT INTO att_mark (name, value) VALUES ('billing_keyed', -1);

-- What settlement counts: taken by the archive, and a click only with its impression.
CREATE VIEW att_settled AS
SELECT b.decision_id, b.app_id, b.billable_type, b.opportunity, b.fact_hour, b.fact_at, b.closure FROM att_billable b
WHERE b.status = 'committed'
  AND (b.billable_type <> 'billable_click' OR b.closure IS NULL
    OR b.closure NOT IN (SELECT closure FROM att_lost_impression));
