-- What each window has promised and what came of it, by task and leg (ruling I10); written when its task ends.
CREATE TABLE ing_window_ledger (
  task_id TEXT NOT NULL,
  leg_code TEXT NOT NULL CHECK (leg_code = 'LIST' OR leg_code = 'DETAIL'),
  run_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  namespace_key TEXT NOT NULL,
  window_from BIGINT,
  window_to BIGINT,
  status_code TEXT NOT NULL CHECK (status_code = 'COMPLETE' OR status_code = 'INCOMPLETE'
    OR status_code = 'HANDED_OVER' OR status_code = 'FAILED' OR status_code = 'CANCELLED'),
  total_code TEXT NOT NULL,
  promised_first BIGINT,
  promised_last BIGINT,
  positions BIGINT NOT NULL,
  distinct_ids BIGINT NOT NULL,
  null_items BIGINT NOT NULL,
  without_id BIGINT NOT NULL,
  suppressed BIGINT NOT NULL,
  inserted BIGINT NOT NULL,
  updated BIGINT NOT NULL,
  equal_count BIGINT NOT NULL,
  older_count BIGINT NOT NULL,
  repeated BIGINT NOT NULL,
  outside BIGINT NOT NULL,
  quarantined BIGINT NOT NULL,
  gone BIGINT NOT NULL,
  readings BIGINT NOT NULL,
  missing BIGINT NOT NULL,
  detail TEXT NOT NULL,
  spec_fingerprint TEXT NOT NULL,
  closed_at BIGINT NOT NULL,
  PRIMARY KEY (task_id, leg_code)
);
CREATE INDEX idx_ledger_window ON ing_window_ledger (provenance_code, endpoint_name, operation_code, window_from);
CREATE INDEX idx_ledger_incomplete ON ing_window_ledger (provenance_code, endpoint_name)
  WHERE status_code = 'INCOMPLETE';
