-- What people changed in the shots of a run (Planner), in the order of their edits; bound to a part of the chapter.
CREATE TABLE stu_edit (
  run_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  shot_id TEXT NOT NULL,
  source_start BIGINT NOT NULL,
  source_end BIGINT NOT NULL,
  changes TEXT NOT NULL,
  edited_by TEXT NOT NULL,
  edited_at BIGINT NOT NULL,
  PRIMARY KEY (run_id, number)
);
