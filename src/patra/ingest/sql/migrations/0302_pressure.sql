-- Partitions that executors found throttled or slow: the planner keeps a larger safety lag meanwhile (ch. 5.7).
CREATE TABLE ing_pressure (
  partition_key TEXT NOT NULL PRIMARY KEY,
  level BIGINT NOT NULL,
  reason_code TEXT NOT NULL,
  noted_at BIGINT NOT NULL
);
