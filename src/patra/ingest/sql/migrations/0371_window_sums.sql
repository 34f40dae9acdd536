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
-- Changes of the sums: here they are in them at once. On PostgreSQL they wait, and nobody waits for the row of a sum.
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

CREATE TRIGGER trg_window_sum_change AFTER INSERT ON ing_window_sum_change BEGIN
  INSERT INTO ing_window_sum (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (NEW.provenance_code, NEW.endpoint_name, NEW.operation_code, NEW.windows, NEW.promised,
    NEW.positions, NEW.landed, NEW.quarantined, NEW.missing, NEW.unproven)
  ON CONFLICT (provenance_code, endpoint_name, operation_code) DO UPDATE SET windows = windows + excluded.windows,
    promised = promised + excluded.promised,
    positions = positions + excluded.positions,
    landed = landed + excluded.landed,
    quarantined = quarantined + excluded.quarantined,
    missing = missing + excluded.missing,
    unproven = unproven + excluded.unproven;
  DELETE FROM ing_window_sum_change WHERE change_id = NEW.change_id;
END;
CREATE TRIGGER trg_window_sum_insert AFTER INSERT ON ing_window_ledger
WHEN NEW.leg_code = 'LIST' AND NEW.status_code = 'COMPLETE' BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (NEW.provenance_code, NEW.endpoint_name, NEW.operation_code, 1, coalesce(NEW.promised_last, 0), NEW.positions,
    (NEW.inserted + NEW.updated + NEW.equal_count + NEW.older_count + NEW.repeated),
    NEW.quarantined, NEW.missing, (CASE WHEN NEW.proof_code = 'NONE' THEN 1 ELSE 0 END));
END;
CREATE TRIGGER trg_window_sum_delete AFTER DELETE ON ing_window_ledger
WHEN OLD.leg_code = 'LIST' AND OLD.status_code = 'COMPLETE' BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (OLD.provenance_code, OLD.endpoint_name, OLD.operation_code, -1, -coalesce(OLD.promised_last, 0), -OLD.positions,
    -(OLD.inserted + OLD.updated + OLD.equal_count + OLD.older_count + OLD.repeated),
    -OLD.quarantined, -OLD.missing, -(CASE WHEN OLD.proof_code = 'NONE' THEN 1 ELSE 0 END));
END;
CREATE TRIGGER trg_window_sum_before AFTER UPDATE ON ing_window_ledger
WHEN OLD.leg_code = 'LIST' AND OLD.status_code = 'COMPLETE' BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (OLD.provenance_code, OLD.endpoint_name, OLD.operation_code, -1, -coalesce(OLD.promised_last, 0), -OLD.positions,
    -(OLD.inserted + OLD.updated + OLD.equal_count + OLD.older_count + OLD.repeated),
    -OLD.quarantined, -OLD.missing, -(CASE WHEN OLD.proof_code = 'NONE' THEN 1 ELSE 0 END));
END;
CREATE TRIGGER trg_window_sum_behind AFTER UPDATE ON ing_window_ledger
WHEN NEW.leg_code = 'LIST' AND NEW.status_code = 'COMPLETE' BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  VALUES (NEW.provenance_code, NEW.endpoint_name, NEW.operation_code, 1, coalesce(NEW.promised_last, 0), NEW.positions,
    (NEW.inserted + NEW.updated + NEW.equal_count + NEW.older_count + NEW.repeated),
    NEW.quarantined, NEW.missing, (CASE WHEN NEW.proof_code = 'NONE' THEN 1 ELSE 0 END));
END;
CREATE TRIGGER trg_window_yield_insert AFTER INSERT ON ing_window_ledger
WHEN NEW.leg_code = 'DETAIL' BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, -landed, -quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = NEW.task_id;
  DELETE FROM ing_window_yield WHERE task_id = NEW.task_id;
  INSERT INTO ing_window_yield (task_id, provenance_code, endpoint_name, operation_code, landed, quarantined)
  SELECT d.task_id, l.provenance_code, l.endpoint_name, l.operation_code,
    d.inserted + d.updated + d.equal_count + d.older_count + d.repeated
      - (l.inserted + l.updated + l.equal_count + l.older_count + l.repeated),
    d.quarantined - l.quarantined
  FROM ing_window_ledger d JOIN ing_window_ledger l ON l.task_id = d.task_id
  WHERE d.task_id = NEW.task_id AND d.leg_code = 'DETAIL' AND l.leg_code = 'LIST' AND l.status_code = 'COMPLETE';
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, landed, quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = NEW.task_id;
END;
CREATE TRIGGER trg_window_yield_update AFTER UPDATE ON ing_window_ledger BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, -landed, -quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = NEW.task_id;
  DELETE FROM ing_window_yield WHERE task_id = NEW.task_id;
  INSERT INTO ing_window_yield (task_id, provenance_code, endpoint_name, operation_code, landed, quarantined)
  SELECT d.task_id, l.provenance_code, l.endpoint_name, l.operation_code,
    d.inserted + d.updated + d.equal_count + d.older_count + d.repeated
      - (l.inserted + l.updated + l.equal_count + l.older_count + l.repeated),
    d.quarantined - l.quarantined
  FROM ing_window_ledger d JOIN ing_window_ledger l ON l.task_id = d.task_id
  WHERE d.task_id = NEW.task_id AND d.leg_code = 'DETAIL' AND l.leg_code = 'LIST' AND l.status_code = 'COMPLETE';
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, landed, quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = NEW.task_id;
END;
CREATE TRIGGER trg_window_yield_delete AFTER DELETE ON ing_window_ledger BEGIN
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, -landed, -quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = OLD.task_id;
  DELETE FROM ing_window_yield WHERE task_id = OLD.task_id;
  INSERT INTO ing_window_yield (task_id, provenance_code, endpoint_name, operation_code, landed, quarantined)
  SELECT d.task_id, l.provenance_code, l.endpoint_name, l.operation_code,
    d.inserted + d.updated + d.equal_count + d.older_count + d.repeated
      - (l.inserted + l.updated + l.equal_count + l.older_count + l.repeated),
    d.quarantined - l.quarantined
  FROM ing_window_ledger d JOIN ing_window_ledger l ON l.task_id = d.task_id
  WHERE d.task_id = OLD.task_id AND d.leg_code = 'DETAIL' AND l.leg_code = 'LIST' AND l.status_code = 'COMPLETE';
  INSERT INTO ing_window_sum_change (provenance_code, endpoint_name, operation_code, windows, promised, positions,
    landed, quarantined, missing, unproven)
  SELECT provenance_code, endpoint_name, operation_code, 0, 0, 0, landed, quarantined, 0, 0
  FROM ing_window_yield WHERE task_id = OLD.task_id;
END;
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
