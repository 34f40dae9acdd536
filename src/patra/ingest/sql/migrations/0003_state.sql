-- What executors write and the planner reads: watermarks, records, signals (ch. 7.7, rulings I2, I6; ch. 6.3.2).

CREATE TABLE ing_cursor (
  provenance_code TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cursor_key TEXT NOT NULL,
  namespace_scope_code TEXT NOT NULL
    CHECK (namespace_scope_code = 'GLOBAL' OR namespace_scope_code = 'EXPR' OR namespace_scope_code = 'CUSTOM'),
  namespace_key TEXT NOT NULL,
  cursor_type_code TEXT NOT NULL
    CHECK (cursor_type_code = 'TIME' OR cursor_type_code = 'ID' OR cursor_type_code = 'TOKEN'),
  cursor_value TEXT NOT NULL,
  normalized_instant BIGINT,
  normalized_numeric BIGINT,
  observed_max_value TEXT,
  schedule_instance_id TEXT,
  plan_id TEXT,
  slice_id TEXT,
  task_id TEXT,
  run_id TEXT,
  batch_no BIGINT,
  expr_hash TEXT,
  version BIGINT NOT NULL DEFAULT 1,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key)
);
CREATE INDEX idx_cursor_sort_time ON ing_cursor (provenance_code, operation_code, normalized_instant);
CREATE INDEX idx_cursor_sort_id ON ing_cursor (provenance_code, operation_code, normalized_numeric);

-- The record as it was mapped, one row for each business key. A row is a kilobyte and more: it does not belong into the
-- B-tree of its key, where SQLite would move it about.
CREATE TABLE ing_record (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  record_version TEXT,
  deleted BIGINT NOT NULL DEFAULT 0 CHECK (deleted = 0 OR deleted = 1),
  expr_hash TEXT NOT NULL,
  content {blob} NOT NULL,
  content_hash TEXT NOT NULL,
  task_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  batch_no BIGINT NOT NULL,
  first_seen_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  refresh_checked_at BIGINT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, provider_id)
);
CREATE INDEX idx_record_changed ON ing_record (provenance_code, endpoint_name, changed_at);
CREATE INDEX idx_record_refresh ON ing_record (provenance_code, endpoint_name, refresh_checked_at);

-- Records that someone wants fetched again: retracted, merged, incomplete, quarantined (ch. 4.14, 12.5).
CREATE TABLE ing_signal (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  reason_code TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '',
  raised_by TEXT NOT NULL,
  raised_at BIGINT NOT NULL,
  -- the plan that took it up; an open signal has none
  plan_id TEXT,
  PRIMARY KEY (provenance_code, endpoint_name, provider_id)
);
CREATE INDEX idx_signal_open ON ing_signal (provenance_code, endpoint_name, provider_id) WHERE plan_id IS NULL;
