-- An operator's act on many dead letters: the letters are fixed when it begins, and worked off in bites.
CREATE TABLE bus_bulk_act (
  act_id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('replay', 'discard')),
  group_name TEXT NOT NULL,
  event_type TEXT NOT NULL,
  error_code TEXT NOT NULL,
  done_by TEXT NOT NULL,
  why TEXT NOT NULL,
  begun_at BIGINT NOT NULL,
  ended_at BIGINT,
  state TEXT NOT NULL CHECK (state IN ('running', 'done', 'stopped')),
  total BIGINT NOT NULL,
  moved BIGINT NOT NULL,
  refused BIGINT NOT NULL,
  last_letter TEXT NOT NULL,
  last_code TEXT NOT NULL
);
CREATE INDEX bus_bulk_act_running ON bus_bulk_act (begun_at) WHERE state = 'running';
CREATE INDEX bus_bulk_act_by_time ON bus_bulk_act (begun_at, act_id);
CREATE TABLE bus_bulk_letter (
  act_id TEXT NOT NULL,
  letter_id TEXT NOT NULL,
  PRIMARY KEY (act_id, letter_id)
);
