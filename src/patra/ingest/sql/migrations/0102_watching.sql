-- What the watch writes (ch. 14.8): alerts with their state, and how long queues have been; and what bounds kept bodies.

CREATE TABLE ing_alert (
  alert_key TEXT NOT NULL PRIMARY KEY,
  rule_code TEXT NOT NULL,
  subject TEXT NOT NULL,
  severity TEXT NOT NULL,
  state_code TEXT NOT NULL CHECK (state_code = 'PENDING' OR state_code = 'FIRING' OR state_code = 'OVER'),
  value DOUBLE PRECISION NOT NULL,
  detail TEXT NOT NULL,
  since BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  fired_at BIGINT,
  over_at BIGINT,
  calm_since BIGINT
);
CREATE INDEX idx_alert_live ON ing_alert (state_code, since) WHERE state_code <> 'OVER';

-- Looks at a queue, by day: their number, their sum and the sum of their squares.
CREATE TABLE ing_queue_stat (
  partition_key TEXT NOT NULL,
  day BIGINT NOT NULL,
  samples BIGINT NOT NULL,
  total BIGINT NOT NULL,
  squares BIGINT NOT NULL,
  PRIMARY KEY (partition_key, day)
);

-- The sizes of kept bodies from the oldest on, read without the bodies.
CREATE INDEX idx_body_size ON ing_body (kept_at, size, body_hash);
CREATE INDEX idx_run_finished ON ing_task_run (finished_at) WHERE finished_at IS NOT NULL;
