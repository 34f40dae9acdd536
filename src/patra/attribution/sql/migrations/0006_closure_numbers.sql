-- Closures in the order in which they were opened, found by number; their keys are carried into a tree of their own
-- behind the writer, many to a page (`numbers`). Only SQLite, where one process writes: on PostgreSQL the key is the
-- table's, since each process has to see at once what another opened.
ALTER TABLE att_closure RENAME TO att_closure_by_key;
DROP INDEX att_closure_due;
CREATE TABLE att_closure (
  number INTEGER PRIMARY KEY,
  key {blob} NOT NULL,
  app_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state = 'open' OR state = 'closed_success' OR state = 'closed_failure'),
  source TEXT CHECK (source = 'impression' OR source = 'error' OR source = 'system_timeout_synthesized'),
  opened_at BIGINT NOT NULL,
  due_at BIGINT,
  click TEXT CHECK (click = 'pending' OR click = 'billable' OR click = 'lapsed'),
  click_due BIGINT,
  timeout_id BIGINT,
  body {blob} NOT NULL
);
INSERT INTO att_closure (key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body)
SELECT key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body
FROM att_closure_by_key ORDER BY opened_at, key;
DROP TABLE att_closure_by_key;
CREATE INDEX att_closure_due ON att_closure (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE att_closure_key (
  key {blob} NOT NULL PRIMARY KEY,
  number BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO att_closure_key (key, number) SELECT key, number FROM att_closure ORDER BY key;
INSERT INTO att_mark (name, value) SELECT 'closures_keyed', coalesce(max(number), 0) FROM att_closure;
