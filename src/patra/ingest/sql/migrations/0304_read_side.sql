-- What lists and counts are read by (ch. 13.6, 14.7): each goes by an index, however many rows there are.
DROP INDEX idx_task_plan;
CREATE INDEX idx_task_plan ON ing_task (plan_id, status_code, task_id);
CREATE INDEX idx_task_status ON ing_task (status_code, task_id);
CREATE INDEX idx_task_partition ON ing_task (partition_key, status_code, task_id);
CREATE INDEX idx_task_live ON ing_task (partition_key, status_code, scheduled_at)
  WHERE status_code = 'QUEUED' OR status_code = 'DISPATCHED' OR status_code = 'EXECUTING';
-- How far a watermark may go is read from here: windows in their order, and how wide the widest is.
CREATE INDEX idx_task_from ON ing_task (namespace_key, window_from) WHERE window_to IS NOT NULL;
CREATE INDEX idx_task_width ON ing_task (namespace_key, (window_to - window_from)) WHERE window_to IS NOT NULL;

CREATE INDEX idx_plan_created ON ing_plan (created_at, plan_id);
CREATE INDEX idx_plan_status ON ing_plan (status_code, created_at, plan_id);
CREATE INDEX idx_plan_source ON ing_plan (provenance_code, status_code, created_at, plan_id);
CREATE INDEX idx_sched_refused ON ing_schedule_instance (triggered_at, schedule_instance_id)
  WHERE outcome_code <> 'i_planned';
CREATE INDEX idx_sched_refused_source ON ing_schedule_instance (provenance_code, triggered_at, schedule_instance_id)
  WHERE outcome_code <> 'i_planned';

CREATE INDEX idx_run_started ON ing_task_run (started_at, run_id);
CREATE INDEX idx_run_status ON ing_task_run (status_code, started_at, run_id);
CREATE INDEX idx_run_source ON ing_task_run (provenance_code, status_code, started_at, run_id);
CREATE INDEX idx_run_failure ON ing_task_run (finished_at, run_id) WHERE status_code = 'FAILED';
CREATE INDEX idx_run_failure_source ON ing_task_run (provenance_code, finished_at, run_id) WHERE status_code = 'FAILED';

-- Lineage beside the batch (ch. 13.6): reads need no join with a large table.
ALTER TABLE ing_task_run_batch ADD COLUMN provenance_code TEXT;
ALTER TABLE ing_task_run_batch ADD COLUMN endpoint_name TEXT;
ALTER TABLE ing_task_run_batch ADD COLUMN operation_code TEXT;
UPDATE ing_task_run_batch SET
  provenance_code = (SELECT p.provenance_code FROM ing_plan p WHERE p.plan_id = ing_task_run_batch.plan_id),
  endpoint_name = (SELECT p.endpoint_name FROM ing_plan p WHERE p.plan_id = ing_task_run_batch.plan_id),
  operation_code = (SELECT p.operation_code FROM ing_plan p WHERE p.plan_id = ing_task_run_batch.plan_id)
WHERE error_level IS NOT NULL;
CREATE INDEX idx_batch_error_source ON ing_task_run_batch (provenance_code, created_at, batch_id)
  WHERE error_level IS NOT NULL;

CREATE INDEX idx_quarantine_seen
  ON ing_quarantine (status_code, last_seen_at, item_key, endpoint_name, provenance_code);
CREATE INDEX idx_quarantine_source
  ON ing_quarantine (provenance_code, status_code, last_seen_at, item_key, endpoint_name);

CREATE INDEX idx_ledger_order
  ON ing_window_ledger (provenance_code, (coalesce(window_from, 0)), (task_id || leg_code));

-- Tasks by partition and state, kept by triggers: a queue of a million tasks is not counted anew for each look.
CREATE TABLE ing_task_count (
  partition_key TEXT NOT NULL,
  status_code TEXT NOT NULL,
  tasks BIGINT NOT NULL,
  PRIMARY KEY (partition_key, status_code)
);
-- Changes that are not in the counts yet: on PostgreSQL many write them at once, and nobody waits for a count's row.
CREATE TABLE ing_task_count_change (
  change_id {id},
  partition_key TEXT NOT NULL,
  status_code TEXT NOT NULL,
  tasks BIGINT NOT NULL
);
INSERT INTO ing_task_count (partition_key, status_code, tasks)
SELECT partition_key, status_code, count(*) FROM ing_task GROUP BY partition_key, status_code;

CREATE TRIGGER trg_task_count_insert AFTER INSERT ON ing_task BEGIN
  INSERT INTO ing_task_count (partition_key, status_code, tasks) VALUES (NEW.partition_key, NEW.status_code, 1)
  ON CONFLICT (partition_key, status_code) DO UPDATE SET tasks = tasks + excluded.tasks;
END;
CREATE TRIGGER trg_task_count_update AFTER UPDATE OF status_code ON ing_task
WHEN OLD.status_code <> NEW.status_code BEGIN
  INSERT INTO ing_task_count (partition_key, status_code, tasks) VALUES (OLD.partition_key, OLD.status_code, -1)
  ON CONFLICT (partition_key, status_code) DO UPDATE SET tasks = tasks + excluded.tasks;
  INSERT INTO ing_task_count (partition_key, status_code, tasks) VALUES (NEW.partition_key, NEW.status_code, 1)
  ON CONFLICT (partition_key, status_code) DO UPDATE SET tasks = tasks + excluded.tasks;
END;
CREATE TRIGGER trg_task_count_delete AFTER DELETE ON ing_task BEGIN
  INSERT INTO ing_task_count (partition_key, status_code, tasks) VALUES (OLD.partition_key, OLD.status_code, -1)
  ON CONFLICT (partition_key, status_code) DO UPDATE SET tasks = tasks + excluded.tasks;
END;
