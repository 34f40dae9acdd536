-- A chapter that someone wants as a film (Gateway, C§2.1).
CREATE TABLE stu_task (
  task_id TEXT NOT NULL PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  chapter_id TEXT NOT NULL,
  title TEXT NOT NULL,
  language TEXT NOT NULL,
  quality TEXT NOT NULL,
  options TEXT NOT NULL,
  chapter {blob} NOT NULL,
  chapter_sha256 TEXT NOT NULL,
  submitted_by TEXT NOT NULL,
  submitted_at BIGINT NOT NULL,
  film_uri TEXT,
  film_sha256 TEXT,
  film_ms BIGINT,
  published_at BIGINT,
  errors BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX stu_task_by_time ON stu_task (submitted_at);

-- A run of a task (Orchestrator, C§2.2). `epoch` counts resumptions; what belongs to an earlier one comes too late.
CREATE TABLE stu_run (
  run_id TEXT NOT NULL PRIMARY KEY,
  task_id TEXT NOT NULL,
  stage TEXT NOT NULL CHECK (stage IN ('queued', 'planning', 'routing', 'executing', 'composing', 'publishing', 'completed', 'failed', 'cancelled')),
  epoch BIGINT NOT NULL DEFAULT 1,
  plan_version BIGINT NOT NULL DEFAULT 1,
  context TEXT NOT NULL,
  options TEXT NOT NULL,
  reason_code TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL
);
CREATE INDEX stu_run_by_task ON stu_run (task_id);
CREATE INDEX stu_run_by_stage ON stu_run (stage, created_at);

-- Plans with their prompts (Planner, C§2.3).
CREATE TABLE stu_plan (
  plan_id TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  plan_version BIGINT NOT NULL,
  shots BIGINT NOT NULL,
  prompts BIGINT NOT NULL,
  body {blob} NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX stu_plan_by_run ON stu_plan (run_id, plan_version);

-- Jobs as the Orchestrator knows them (C§2.4, C§2.5).
CREATE TABLE stu_job (
  job_id TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  shot_id TEXT NOT NULL,
  shot_index BIGINT NOT NULL,
  worker_type TEXT NOT NULL,
  prompt_id TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  fallback_chain TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'created', 'claimed', 'succeeded', 'failed', 'cancelled')),
  epoch BIGINT NOT NULL,
  artifacts TEXT NOT NULL DEFAULT '[]',
  error_code TEXT NOT NULL DEFAULT '',
  changed_at BIGINT NOT NULL
);
CREATE INDEX stu_job_by_run ON stu_job (run_id, shot_index);

-- Jobs as the Worker Hub holds them: a queue under leases.
CREATE TABLE stu_work (
  job_id TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  worker_type TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('announced', 'queued', 'leased', 'reported', 'done', 'failed', 'cancelled')),
  epoch BIGINT NOT NULL,
  profile_id TEXT NOT NULL,
  chain TEXT NOT NULL,
  body TEXT NOT NULL DEFAULT '{}',
  context TEXT NOT NULL,
  attempt BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0,
  losses BIGINT NOT NULL DEFAULT 0,
  stop BIGINT NOT NULL DEFAULT 0,
  priority BIGINT NOT NULL DEFAULT 100,
  due_at BIGINT NOT NULL DEFAULT 0,
  lease_owner TEXT,
  leased_until BIGINT,
  lease_fence BIGINT NOT NULL DEFAULT 0,
  lease_count BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX stu_work_free ON stu_work (worker_type, run_id, priority, due_at, job_id) WHERE lease_owner IS NULL AND state = 'queued';
CREATE INDEX stu_work_held ON stu_work (leased_until) WHERE lease_owner IS NOT NULL;
CREATE INDEX stu_work_by_run ON stu_work (run_id);

-- What jobs gave, as the Composer collects it (C§2.5).
CREATE TABLE stu_part (
  job_id TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  shot_id TEXT NOT NULL,
  worker_type TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  status TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  artifacts TEXT NOT NULL,
  error_code TEXT NOT NULL DEFAULT ''
);
CREATE INDEX stu_part_by_run ON stu_part (run_id);

-- Films: wanted, in the making, published (Composer, C§2.6).
CREATE TABLE stu_film (
  run_id TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('wanted', 'leased', 'published', 'failed', 'cancelled')),
  epoch BIGINT NOT NULL,
  context TEXT NOT NULL,
  tries BIGINT NOT NULL DEFAULT 0,
  error_code TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  manifest {blob},
  owner_kind TEXT NOT NULL DEFAULT 'film',
  priority BIGINT NOT NULL DEFAULT 100,
  due_at BIGINT NOT NULL DEFAULT 0,
  lease_owner TEXT,
  leased_until BIGINT,
  lease_fence BIGINT NOT NULL DEFAULT 0,
  lease_count BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX stu_film_free ON stu_film (owner_kind, priority, due_at, run_id) WHERE lease_owner IS NULL AND state = 'wanted';
CREATE INDEX stu_film_held ON stu_film (leased_until) WHERE lease_owner IS NOT NULL;

-- What the Observer saw, in order: the story of a run for people.
CREATE TABLE stu_note (
  note_id {id},
  run_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL,
  cost_micros BIGINT NOT NULL DEFAULT 0,
  work_ms BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX stu_note_by_run ON stu_note (run_id, note_id);
