-- Schedules that operators add beside those of packs, and what came of every tick.
CREATE TABLE ing_schedule (
  job_id TEXT NOT NULL PRIMARY KEY,
  provenance_code TEXT NOT NULL,
  schedule_name TEXT NOT NULL,
  cfg TEXT NOT NULL,
  then_cfg TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE TABLE ing_schedule_history (
  job_id TEXT NOT NULL,
  tick BIGINT NOT NULL,
  outcome_code TEXT NOT NULL,
  detail TEXT NOT NULL,
  plan_id TEXT,
  fired_at BIGINT NOT NULL,
  then_cfg TEXT NOT NULL,
  then_status TEXT NOT NULL CHECK (then_status IN ('', 'PENDING', 'RUNNING', 'DONE', 'FAILED', 'SUPERSEDED')),
  then_detail TEXT NOT NULL,
  then_at BIGINT,
  PRIMARY KEY (job_id, tick)
);
CREATE INDEX idx_schedule_history_then ON ing_schedule_history (then_status);
