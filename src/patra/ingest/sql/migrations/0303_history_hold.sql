-- Runs whose history was brought back from its folder: retention leaves them alone until then (ch. 14.11).
CREATE TABLE ing_history_hold (
  run_id TEXT NOT NULL PRIMARY KEY,
  held_until BIGINT NOT NULL
);
