-- How long a provider asked to be left alone, by rate key: a process that starts without Redis goes by it.
CREATE TABLE ing_cooldown (
  rate_key TEXT NOT NULL PRIMARY KEY,
  cooldown_until BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
