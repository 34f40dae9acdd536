-- The buckets of the rate gate, by rate key: all processes on one PostgreSQL without Redis share them (ruling I12).
CREATE TABLE ing_rate_state (
  rate_key TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);
