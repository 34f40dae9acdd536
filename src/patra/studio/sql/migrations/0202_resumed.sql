-- When a run was last resumed: an event that a module gave up before that does not end it again.
ALTER TABLE stu_run ADD COLUMN resumed_at BIGINT NOT NULL DEFAULT 0;
