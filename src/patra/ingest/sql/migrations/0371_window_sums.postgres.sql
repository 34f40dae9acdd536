-- The sum of a source's coverage, kept by triggers: 100,000 windows are not added up anew for each look, and a process of the
-- release before keeps it, too. It counts windows that add up; a second phase has its records in the DETAIL leg.
CREATE TABLE ing_window_sum (
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  windows BIGINT NOT NULL,
  promised BIGINT NOT NULL,
  positions BIGINT NOT NULL,
  landed BIGINT NOT NULL,
  quarantined BIGINT NOT NULL,
  missing BIGINT NOT NULL,
  unproven BIGINT NOT NULL,
  PRIMARY KEY (provenance_code, endpoint_name, operation_code)
);
-- Changes that are not in the sums yet: on PostgreSQL many write them at once, and nobody waits for the row of a sum.
CREATE TABLE ing_window_sum_change (
  change_id {id},
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  windows BIGINT NOT NULL,
  promised BIGINT NOT NULL,
  positions BIGINT NOT NULL,
  landed BIGINT NOT NULL,
  quarantined BIGINT NOT NULL,
  missing BIGINT NOT NULL,
  unproven BIGINT NOT NULL
);
-- By how much the DETAIL leg of a window that adds up counts more than its LIST leg, as the sums have it.
CREATE TABLE ing_window_yield (
  task_id TEXT NOT NULL PRIMARY KEY,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  operation_code TEXT NOT NULL,
  landed BIGINT NOT NULL,
  quarantined BIGINT NOT NULL
);

CREATE FUNCTION ing_window_sum_add() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (NEW.provenance_code, NEW.endpoint_name, NEW.operation_code, 1, coalesce(NEW.promised_last, 0), NEW.positions,
    (NEW.inserted + NEW.updated + NEW.equal_count + NEW.older_count + NEW.repeated),
    NEW.quarantined, NEW.missing, (CASE WHEN NEW.proof_code = ''NONE'' THEN 1 ELSE 0 END));
  RETURN NULL;
END';
CREATE FUNCTION ing_window_sum_take() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (OLD.provenance_code, OLD.endpoint_name, OLD.operation_code, -1, -coalesce(OLD.promised_last, 0), -OLD.positions,
    -(OLD.inserted + OLD.updated + OLD.equal_count + OLD.older_count + OLD.repeated),
    -OLD.quarantined, -OLD.missing, -(CASE WHEN OLD.proof_code = ''NONE'' THEN 1 ELSE 0 END));
  RETURN NULL;
END';
-- The legs of a window may change in one statement, whose end a trigger sees: it takes away what was counted, and counts anew.
CREATE FUNCTION ing_window_yield_of(task TEXT) RETURNS void LANGUAGE sql AS '
  WITH gone AS (DELETE FROM ing_window_yield WHERE task_id = task RETURNING *)
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, -landed, -quarantined, 0, 0 FROM gone;
  INSERT INTO ing_window_yield (task_id, provenance_code, endpoint_name, operation_code, landed, quarantined)
  SELECT d.task_id, l.provenance_code, l.endpoint_name, l.operation_code,
    d.inserted + d.updated + d.equal_count + d.older_count + d.repeated
      - (l.inserted + l.updated + l.equal_count + l.older_count + l.repeated),
    d.quarantined - l.quarantined
  FROM ing_window_ledger d JOIN ing_window_ledger l ON l.task_id = d.task_id
  WHERE d.task_id = task AND d.leg_code = ''DETAIL'' AND l.leg_code = ''LIST'' AND l.status_code = ''COMPLETE'';
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, landed, quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = task
';
CREATE FUNCTION ing_window_yield_new() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN PERFORM ing_window_yield_of(NEW.task_id); RETURN NULL; END';
CREATE FUNCTION ing_window_yield_old() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN PERFORM ing_window_yield_of(OLD.task_id); RETURN NULL; END';
-- First the triggers, which wait for those who write, then what there is: nothing is counted twice, and nothing left out.
CREATE TRIGGER trg_window_sum_insert AFTER INSERT ON ing_window_ledger FOR EACH ROW
  WHEN (NEW.leg_code = 'LIST' AND NEW.status_code = 'COMPLETE') EXECUTE FUNCTION ing_window_sum_add();
CREATE TRIGGER trg_window_sum_delete AFTER DELETE ON ing_window_ledger FOR EACH ROW
  WHEN (OLD.leg_code = 'LIST' AND OLD.status_code = 'COMPLETE') EXECUTE FUNCTION ing_window_sum_take();
CREATE TRIGGER trg_window_sum_before AFTER UPDATE ON ing_window_ledger FOR EACH ROW
  WHEN (OLD.leg_code = 'LIST' AND OLD.status_code = 'COMPLETE') EXECUTE FUNCTION ing_window_sum_take();
CREATE TRIGGER trg_window_sum_behind AFTER UPDATE ON ing_window_ledger FOR EACH ROW
  WHEN (NEW.leg_code = 'LIST' AND NEW.status_code = 'COMPLETE') EXECUTE FUNCTION ing_window_sum_add();
CREATE TRIGGER trg_window_yield_insert AFTER INSERT ON ing_window_ledger FOR EACH ROW
  WHEN (NEW.leg_code = 'DETAIL') EXECUTE FUNCTION ing_window_yield_new();
CREATE TRIGGER trg_window_yield_update AFTER UPDATE ON ing_window_ledger FOR EACH ROW
  EXECUTE FUNCTION ing_window_yield_new();
CREATE TRIGGER trg_window_yield_delete AFTER DELETE ON ing_window_ledger FOR EACH ROW
  EXECUTE FUNCTION ing_window_yield_old();
INSERT INTO ing_window_yield (task_id, provenance_code, endpoint_name, operation_code, landed, quarantined)
  SELECT d.task_id, l.provenance_code, l.endpoint_name, l.operation_code,
    d.inserted + d.updated + d.equal_count + d.older_count + d.repeated
      - (l.inserted + l.updated + l.equal_count + l.older_count + l.repeated),
    d.quarantined - l.quarantined
  FROM ing_window_ledger d JOIN ing_window_ledger l ON l.task_id = d.task_id
  WHERE d.leg_code = 'DETAIL' AND l.leg_code = 'LIST' AND l.status_code = 'COMPLETE';
INSERT INTO ing_window_sum (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
SELECT provenance_code, endpoint_name, operation_code, CAST(sum(windows) AS BIGINT), CAST(sum(promised) AS BIGINT),
  CAST(sum(positions) AS BIGINT), CAST(sum(landed) AS BIGINT), CAST(sum(quarantined) AS BIGINT),
  CAST(sum(missing) AS BIGINT), CAST(sum(unproven) AS BIGINT)
FROM (
  SELECT provenance_code, endpoint_name, operation_code, 1 AS windows, coalesce(promised_last, 0) AS promised, positions,
    inserted + updated + equal_count + older_count + repeated AS landed, quarantined, missing,
    CASE WHEN proof_code = 'NONE' THEN 1 ELSE 0 END AS unproven
  FROM ing_window_ledger WHERE leg_code = 'LIST' AND status_code = 'COMPLETE'
  UNION ALL SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, landed, quarantined, 0, 0
  FROM ing_window_yield
) AS parts GROUP BY provenance_code, endpoint_name, operation_code;
-- What summed before.
DROP INDEX idx_ledger_sum;
DROP INDEX idx_ledger_detail;
-- What a schedule has read again is found from the schedule on, without a walk over the windows of the source.
CREATE INDEX idx_sched_job ON ing_schedule_instance (scheduler_job_id) WHERE scheduler_job_id <> '';
CREATE INDEX idx_ledger_reread ON ing_window_ledger (plan_id) WHERE operation_code = 'BACKFILL';
