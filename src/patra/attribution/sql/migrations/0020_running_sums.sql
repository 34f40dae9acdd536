-- Running sums of settlement: committed billable facts by hour, counted behind the writer up to a mark, in the order of
-- decision. A fact that was not committed when it was reached is listed in `att_sum_pending` until it is.
CREATE TABLE att_sum_hour (
  fact_hour BIGINT NOT NULL,
  app_id TEXT NOT NULL,
  billable_type TEXT NOT NULL,
  facts BIGINT NOT NULL,
  PRIMARY KEY (fact_hour, app_id, billable_type)
) {without_rowid};
-- The same by placement; where the opportunity of a fact had none, `opportunity` is its key instead: one may come later.
CREATE TABLE att_sum_placement (
  fact_hour BIGINT NOT NULL,
  app_id TEXT NOT NULL,
  billable_type TEXT NOT NULL,
  placement {blob} NOT NULL,
  opportunity {blob} NOT NULL,
  facts BIGINT NOT NULL,
  PRIMARY KEY (fact_hour, app_id, billable_type, placement, opportunity)
) {without_rowid};
CREATE TABLE att_sum_pending (
  sums TEXT NOT NULL,
  decision_id BIGINT NOT NULL,
  PRIMARY KEY (sums, decision_id)
) {without_rowid};
INSERT INTO att_mark (name, value) VALUES ('summed_hour', -1), ('summed_placement', -1);
