-- What modules kept of each other's tables they now keep from events: how many prompts the plan of a run has (Orchestrator),
-- the plan of a film and the results that it is made of (Composer; empty where an earlier release asked for the film).
ALTER TABLE stu_run ADD COLUMN plan_prompts BIGINT NOT NULL DEFAULT 0;
UPDATE stu_run SET plan_prompts = COALESCE(
  (SELECT p.prompts FROM stu_plan p WHERE p.run_id = stu_run.run_id AND p.plan_version = stu_run.plan_version), 0);
ALTER TABLE stu_film ADD COLUMN plan_id TEXT NOT NULL DEFAULT '';
ALTER TABLE stu_film ADD COLUMN parts TEXT NOT NULL DEFAULT '';
UPDATE stu_film SET plan_id = COALESCE(
  (SELECT p.plan_id FROM stu_plan p JOIN stu_run r ON r.run_id = p.run_id AND r.plan_version = p.plan_version
   WHERE p.run_id = stu_film.run_id), '');
