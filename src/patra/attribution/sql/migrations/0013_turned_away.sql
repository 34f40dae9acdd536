-- Batches that were turned away before they were read (401, 403, 413, 415, overload), by day, app, batch and code.
CREATE TABLE att_turned_away (
  key {blob} NOT NULL PRIMARY KEY,
  code TEXT NOT NULL,
  app_id TEXT,
  batch_id TEXT,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  count BIGINT NOT NULL,
  size BIGINT
);
CREATE INDEX att_turned_away_at ON att_turned_away (last_at);
