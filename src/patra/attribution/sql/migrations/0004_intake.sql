-- Since when a batch may wait for its commit, by process that takes batches; said anew every second. Only PostgreSQL uses
-- it: a timer goes no further than the earliest, so that no process applies a deadline before a batch that came first.
CREATE TABLE att_intake (
  process TEXT NOT NULL PRIMARY KEY,
  oldest BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
);
