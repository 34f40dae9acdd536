-- What people said of an alert: that they know of it (ACK), or that nobody is to be told of it for a while (SILENCE).
-- `held_at` is when the firing began that a silence kept from being told.
CREATE TABLE ing_alert_note (
  alert_key TEXT NOT NULL,
  kind_code TEXT NOT NULL CHECK (kind_code = 'ACK' OR kind_code = 'SILENCE'),
  noted_by TEXT NOT NULL,
  noted_at BIGINT NOT NULL,
  until_at BIGINT,
  why TEXT NOT NULL,
  held_at BIGINT,
  PRIMARY KEY (alert_key, kind_code)
);
