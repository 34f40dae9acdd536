-- The sum of a source's coverage reads one index and no row. Windows that do not add up have an index of their own.
CREATE INDEX idx_ledger_sum ON ing_window_ledger (provenance_code, endpoint_name, operation_code, promised_last,
  positions, inserted, updated, equal_count, older_count, repeated, quarantined, missing, leg_code, status_code)
  WHERE leg_code = 'LIST' AND status_code = 'COMPLETE';
CREATE INDEX idx_ledger_detail ON ing_window_ledger (provenance_code, task_id) WHERE leg_code = 'DETAIL';
CREATE INDEX idx_ledger_open ON ing_window_ledger (provenance_code)
  WHERE status_code = 'INCOMPLETE' OR status_code = 'FAILED';
