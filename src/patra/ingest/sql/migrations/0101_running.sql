-- What executors write (ch. 7.5 to 7.8, 12.5, 14.9): attempts, batches, cursor events, quarantined records, kept bodies.
-- Ids say where a row comes from: run p….t000017.r2, batch p….t000017.r2.b12.

CREATE TABLE ing_task_run (
  run_id TEXT NOT NULL PRIMARY KEY,
  task_id TEXT NOT NULL,
  schedule_instance_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  slice_id TEXT NOT NULL,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  attempt_no BIGINT NOT NULL,
  status_code TEXT NOT NULL CHECK (status_code IN ('PLANNED','RUNNING','SUCCEEDED','PARTIAL','FAILED','CANCELLED')),
  window_from BIGINT,
  window_to BIGINT,
  lease_owner TEXT NOT NULL,
  lease_fence BIGINT NOT NULL,
  checkpoint TEXT NOT NULL,
  stats TEXT NOT NULL,
  reason_code TEXT,
  error TEXT,
  started_at BIGINT NOT NULL,
  finished_at BIGINT,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_run_attempt ON ing_task_run (task_id, attempt_no);
CREATE INDEX idx_run_task_status ON ing_task_run (task_id, status_code);
CREATE INDEX idx_run_time ON ing_task_run (provenance_code, operation_code, started_at);
CREATE INDEX idx_run_failed ON ing_task_run (started_at) WHERE status_code IN ('FAILED', 'PARTIAL');

-- A batch is written when it is over, in the transaction of its effects: it is never seen PLANNED or RUNNING.
CREATE TABLE ing_task_run_batch (
  batch_id TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  slice_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  expr_hash TEXT NOT NULL,
  batch_no BIGINT NOT NULL,
  phase_code TEXT NOT NULL CHECK (phase_code IN ('LIST', 'DETAIL')),
  status_code TEXT NOT NULL CHECK (status_code IN ('PLANNED','RUNNING','SUCCEEDED','SKIPPED','FAILED')),
  page_no BIGINT,
  page_size BIGINT,
  page_offset BIGINT,
  before_token TEXT,
  after_token TEXT,
  before_url TEXT,
  next_url TEXT,
  -- tokens may be long and, with some providers, the same on every page: this is what is unique about them in a run
  before_key TEXT,
  window_from BIGINT,
  window_to BIGINT,
  request_digest TEXT NOT NULL,
  response_digest TEXT NOT NULL,
  stats TEXT NOT NULL,
  body_hash TEXT,
  idempotent_key TEXT NOT NULL,
  error_level TEXT CHECK (error_level IN ('L1', 'L2', 'L3', 'L4')),
  reason_code TEXT NOT NULL,
  error TEXT,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_run_batch_no ON ing_task_run_batch (run_id, batch_no);
CREATE UNIQUE INDEX uk_run_before_tok ON ing_task_run_batch (run_id, before_key);
CREATE UNIQUE INDEX uk_batch_idem ON ing_task_run_batch (idempotent_key);
CREATE INDEX idx_batch_time ON ing_task_run_batch (created_at);
CREATE INDEX idx_batch_error ON ing_task_run_batch (created_at) WHERE error_level IS NOT NULL;

CREATE TABLE ing_cursor_event (
  event_id {id},
  provenance_code TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  cursor_key TEXT NOT NULL,
  namespace_scope_code TEXT NOT NULL CHECK (namespace_scope_code IN ('GLOBAL', 'EXPR', 'CUSTOM')),
  namespace_key TEXT NOT NULL,
  cursor_type_code TEXT NOT NULL CHECK (cursor_type_code IN ('TIME', 'ID', 'TOKEN')),
  direction_code TEXT NOT NULL CHECK (direction_code IN ('FORWARD', 'BACKFILL')),
  prev_value TEXT,
  new_value TEXT,
  prev_instant BIGINT,
  new_instant BIGINT,
  observed_max_value TEXT,
  -- what the batch confirmed of its slice's window; nothing for a batch in the middle of an unordered list
  window_from BIGINT,
  window_to BIGINT,
  reason_code TEXT NOT NULL,
  schedule_instance_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  slice_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  batch_no BIGINT NOT NULL,
  expr_hash TEXT NOT NULL,
  idempotent_key TEXT NOT NULL,
  record_remarks TEXT NOT NULL,
  event_time BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_cur_evt_idem ON ing_cursor_event (idempotent_key);
CREATE INDEX idx_cur_evt_timeline
  ON ing_cursor_event (provenance_code, operation_code, namespace_scope_code, namespace_key, event_time);
CREATE INDEX idx_cur_evt_instant ON ing_cursor_event (provenance_code, operation_code, new_instant);
CREATE INDEX idx_cur_evt_lineage ON ing_cursor_event (run_id, batch_no);

-- Records that could not be taken in (L3); `item_key` is the id, or a hash of the item where it has none.
CREATE TABLE ing_quarantine (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  item_key TEXT NOT NULL,
  provider_id TEXT,
  status_code TEXT NOT NULL CHECK (status_code IN ('OPEN', 'RESOLVED', 'DISMISSED')),
  reason_code TEXT NOT NULL,
  field_path TEXT NOT NULL,
  detail TEXT NOT NULL,
  sample {blob} NOT NULL,
  sample_hash TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  slice_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  batch_no BIGINT NOT NULL,
  expr_hash TEXT NOT NULL,
  seen_count BIGINT NOT NULL DEFAULT 1,
  first_seen_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, item_key)
);
CREATE INDEX idx_quarantine_open ON ing_quarantine (provenance_code, endpoint_name, last_seen_at)
  WHERE status_code = 'OPEN';

-- Bodies of answers by their hash, zstd; kept only where the installation asks for it (ch. 14.9, bounded by size and age).
CREATE TABLE ing_body (
  body_hash TEXT NOT NULL PRIMARY KEY,
  content {blob} NOT NULL,
  size BIGINT NOT NULL,
  kept_at BIGINT NOT NULL
);
CREATE INDEX idx_body_kept ON ing_body (kept_at);
