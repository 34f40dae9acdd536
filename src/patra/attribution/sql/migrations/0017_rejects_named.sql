-- A rejected event tells its id as sent, the field that was wrong and what was expected there; null in older rows.
ALTER TABLE att_reject ADD COLUMN event_id TEXT;
ALTER TABLE att_reject ADD COLUMN field_path TEXT;
ALTER TABLE att_reject ADD COLUMN expected TEXT;
CREATE INDEX att_reject_decision ON att_reject (decision_id);
