-- Schedules that an operator has turned on or off: it outlives a reload of the pack, whose own word it overrides.
CREATE TABLE ing_schedule_switch (
  job_id TEXT NOT NULL PRIMARY KEY,
  enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
  switched_by TEXT NOT NULL,
  switched_at BIGINT NOT NULL
);
