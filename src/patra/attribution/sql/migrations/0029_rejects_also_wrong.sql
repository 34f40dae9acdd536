-- A rejected event tells which further required fields were missing; null where there were none, and in older rows.
ALTER TABLE att_reject ADD COLUMN also_wrong TEXT;
