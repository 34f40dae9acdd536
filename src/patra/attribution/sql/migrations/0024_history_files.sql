-- Files of rows past their retention: a span is fixed first, then written (`file`), then its rows are deleted. One span of a
-- kind at a time is under way, but for those that were brought back and are held for a while.
CREATE TABLE att_history_file (
  number {id},
  kind TEXT NOT NULL,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  cutoff BIGINT NOT NULL,
  planned_at BIGINT NOT NULL,
  file TEXT,
  row_count BIGINT,
  sha256 TEXT,
  first_at BIGINT,
  last_at BIGINT,
  exported_at BIGINT,
  deleted_at BIGINT,
  held_until BIGINT
);
CREATE UNIQUE INDEX att_history_file_open ON att_history_file (kind) WHERE deleted_at IS NULL AND held_until IS NULL;
CREATE INDEX att_history_file_by_time ON att_history_file (kind, first_at);

-- Up to which instant lines of the log were deleted without being exported: all that were purged before this migration.
INSERT INTO att_mark (name, value) SELECT 'log_lost', value FROM att_mark WHERE name = 'log_purged';
