-- Records that an operator issued again because the archive did not take them: `.r2`, `.r3` … of the archive's contract.
CREATE TABLE att_reissue (
  decision_id BIGINT NOT NULL,
  record_type TEXT NOT NULL CHECK (record_type IN ('decision_audit', 'billable_fact', 'attribution_fact')),
  issue BIGINT NOT NULL CHECK (issue >= 2),
  record_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('new', 'committed', 'duplicate', 'conflicted', 'rejected', 'superseded')),
  at BIGINT NOT NULL,
  PRIMARY KEY (decision_id, record_type, issue)
);
CREATE INDEX att_reissue_key ON att_reissue (record_key);
