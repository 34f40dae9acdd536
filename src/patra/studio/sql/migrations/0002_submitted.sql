-- The run that a task will have, known before the Orchestrator creates it: whoever submitted may ask for it at once.
ALTER TABLE stu_task ADD COLUMN run_id TEXT;
UPDATE stu_task SET run_id = (SELECT r.run_id FROM stu_run r WHERE r.task_id = stu_task.task_id);
CREATE INDEX stu_task_by_run ON stu_task (run_id);
