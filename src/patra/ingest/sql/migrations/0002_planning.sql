-- What the planner writes (ch. 7.1 to 7.4): the trigger, the plan, its slices, their tasks.
-- Ids say where a row comes from: plan p…, slice p….s000017, task p….t000017.
-- CHECKs are written with OR: SQLite builds the list of an IN anew for every row.

CREATE TABLE ing_schedule_instance (
  schedule_instance_id TEXT NOT NULL PRIMARY KEY,
  trigger_key TEXT NOT NULL,
  scheduler_code TEXT NOT NULL,
  scheduler_job_id TEXT NOT NULL,
  scheduler_log_id TEXT NOT NULL,
  trigger_type_code TEXT NOT NULL CHECK (trigger_type_code = 'CRON' OR trigger_type_code = 'MANUAL'),
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  trigger_params TEXT NOT NULL,
  expr_proto_hash TEXT,
  spec_fingerprint TEXT,
  outcome_code TEXT NOT NULL,
  record_remarks TEXT NOT NULL,
  triggered_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_sched_trigger ON ing_schedule_instance (trigger_key);
CREATE INDEX idx_sched_src ON ing_schedule_instance (scheduler_code, scheduler_job_id, scheduler_log_id);
CREATE INDEX idx_sched_time ON ing_schedule_instance (provenance_code, triggered_at);

CREATE TABLE ing_plan (
  plan_id TEXT NOT NULL PRIMARY KEY,
  schedule_instance_id TEXT NOT NULL,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  plan_strategy TEXT NOT NULL CHECK (plan_strategy = 'TIME' OR plan_strategy = 'PAGE' OR plan_strategy = 'ID'),
  window_from BIGINT,
  window_to BIGINT,
  namespace_scope_code TEXT NOT NULL,
  namespace_key TEXT NOT NULL,
  priority BIGINT NOT NULL,
  expr_proto_hash TEXT NOT NULL,
  expr_proto_snapshot TEXT NOT NULL,
  spec_fingerprint TEXT NOT NULL,
  status_code TEXT NOT NULL
    CHECK (status_code = 'DRAFT' OR status_code = 'SLICING' OR status_code = 'READY' OR status_code = 'PARTIAL'
      OR status_code = 'FAILED' OR status_code = 'CANCELLED'),
  -- how far slicing has come: the next slice's number, and where the rest begins
  next_slice_no BIGINT NOT NULL DEFAULT 1,
  progress TEXT NOT NULL DEFAULT '',
  total_estimated BIGINT,
  expected_requests BIGINT NOT NULL DEFAULT 0,
  record_remarks TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX idx_plan_src_op_time ON ing_plan (provenance_code, operation_code, created_at);
CREATE INDEX idx_plan_schedule ON ing_plan (schedule_instance_id);
CREATE INDEX idx_plan_open ON ing_plan (created_at) WHERE status_code IN ('DRAFT', 'SLICING', 'PARTIAL');
CREATE INDEX idx_plan_namespace ON ing_plan (namespace_key);

CREATE TABLE ing_plan_slice (
  slice_id TEXT NOT NULL PRIMARY KEY,
  plan_id TEXT NOT NULL,
  slice_no BIGINT NOT NULL,
  parent_slice_id TEXT,
  provenance_code TEXT NOT NULL,
  slice_signature_hash TEXT NOT NULL,
  slice_spec TEXT NOT NULL,
  expr_hash TEXT NOT NULL,
  expr_snapshot TEXT NOT NULL,
  status_code TEXT NOT NULL
    CHECK (status_code = 'PENDING' OR status_code = 'READY' OR status_code = 'PARTIAL' OR status_code = 'FAILED'
      OR status_code = 'CANCELLED'),
  record_remarks TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_slice_sig ON ing_plan_slice (plan_id, slice_signature_hash);
CREATE INDEX idx_slice_status ON ing_plan_slice (plan_id, status_code);

CREATE TABLE ing_task (
  task_id TEXT NOT NULL PRIMARY KEY,
  schedule_instance_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  slice_id TEXT NOT NULL,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  -- provenance/endpoint/operation: executors take turns by it (ch. 5.6)
  partition_key TEXT NOT NULL,
  credential_id TEXT,
  params TEXT NOT NULL,
  expr_hash TEXT NOT NULL,
  idempotent_key TEXT NOT NULL,
  status_code TEXT NOT NULL
    CHECK (status_code = 'QUEUED' OR status_code = 'DISPATCHED' OR status_code = 'EXECUTING'
      OR status_code = 'SUCCEEDED' OR status_code = 'FAILED' OR status_code = 'PARTIAL'
      OR status_code = 'CANCELLED'),
  priority BIGINT NOT NULL,
  scheduled_at BIGINT NOT NULL,
  -- the part of time that this task answers for; a re-sliced task answers for what it finished
  namespace_key TEXT NOT NULL,
  window_from BIGINT,
  window_to BIGINT,
  lease_owner TEXT,
  leased_until BIGINT,
  lease_fence BIGINT NOT NULL DEFAULT 0,
  lease_count BIGINT NOT NULL DEFAULT 0,
  reason_code TEXT,
  started_at BIGINT,
  finished_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_task_idem ON ing_task (idempotent_key);
-- The queue: only what can be taken is in it, so taking from a million queued tasks reads as many entries as it takes.
CREATE INDEX idx_task_pick ON ing_task (partition_key, priority, scheduled_at, task_id)
  WHERE lease_owner IS NULL AND status_code = 'QUEUED';
CREATE INDEX idx_task_held ON ing_task (leased_until) WHERE lease_owner IS NOT NULL;
CREATE INDEX idx_task_plan ON ing_task (plan_id, status_code);
CREATE INDEX idx_task_cover ON ing_task (namespace_key, window_to) WHERE window_to IS NOT NULL;

-- What executors ask the planner to cut smaller (ch. 5.5, 8.4); one request a task.
CREATE TABLE ing_reslice_request (
  task_id TEXT NOT NULL PRIMARY KEY,
  plan_id TEXT NOT NULL,
  slice_id TEXT NOT NULL,
  rest TEXT NOT NULL,
  observed_total BIGINT,
  reason_code TEXT NOT NULL,
  status_code TEXT NOT NULL CHECK (status_code = 'OPEN' OR status_code = 'DONE' OR status_code = 'REFUSED'),
  record_remarks TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX idx_reslice_open ON ing_reslice_request (created_at) WHERE status_code = 'OPEN';

-- Sources and endpoints that stand still: paused by an operator, or halted by a fatal error (ch. 5.9, 12.2).
CREATE TABLE ing_halt (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  kind_code TEXT NOT NULL CHECK (kind_code = 'PAUSE' OR kind_code = 'BREAKER'),
  reason_code TEXT NOT NULL,
  detail TEXT NOT NULL,
  halted_by TEXT NOT NULL,
  halted_at BIGINT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, kind_code)
);

-- How many records a window turned out to hold: the planner's only source of estimates (ruling I3).
CREATE TABLE ing_window_stat (
  selection_key TEXT NOT NULL,
  window_from BIGINT NOT NULL,
  window_to BIGINT NOT NULL,
  total BIGINT NOT NULL,
  reported_at BIGINT NOT NULL,
  PRIMARY KEY (selection_key, window_from, window_to)
);

-- Quotas by hour and day: what plans have reserved and what executors have used (ch. 4.10.5).
CREATE TABLE ing_quota (
  rate_key TEXT NOT NULL,
  period_code TEXT NOT NULL CHECK (period_code = 'HOUR' OR period_code = 'DAY'),
  period_start BIGINT NOT NULL,
  reserved BIGINT NOT NULL DEFAULT 0,
  consumed BIGINT NOT NULL DEFAULT 0,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (rate_key, period_code, period_start)
);

-- The last tick of each schedule that was looked at, and what came of it.
CREATE TABLE ing_schedule_tick (
  job_id TEXT NOT NULL PRIMARY KEY,
  last_tick BIGINT NOT NULL,
  outcome_code TEXT NOT NULL,
  detail TEXT NOT NULL,
  plan_id TEXT,
  updated_at BIGINT NOT NULL
);
