-- Facts that left the store for history after their period was closed, summed as in `att_sum_placement`: the running sums
-- hold them still, and are checked and rebuilt with these.
CREATE TABLE att_sum_purged (
  fact_hour BIGINT NOT NULL,
  app_id TEXT NOT NULL,
  billable_type TEXT NOT NULL,
  placement {blob} NOT NULL,
  opportunity {blob} NOT NULL,
  facts BIGINT NOT NULL,
  PRIMARY KEY (fact_hour, app_id, billable_type, placement, opportunity)
) {without_rowid};
