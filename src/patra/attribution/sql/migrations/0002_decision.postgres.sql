-- The built-in archive: one row a decision, in the order of decision, with all that its records are made of. Only the
-- status of a record changes, along the edges of §3.8.27. `settled_at` and `settled_code` say when an archive outside
-- the store took the records, or why it did not. On SQLite the key is the row number.
CREATE TABLE att_decision (
  id BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  reason TEXT NOT NULL,
  audit_status TEXT NOT NULL
    CHECK (audit_status = 'committed' OR audit_status = 'new' OR audit_status = 'duplicate' OR audit_status = 'conflicted' OR audit_status = 'rejected' OR audit_status = 'superseded'),
  attribution_status TEXT
    CHECK (attribution_status = 'committed' OR attribution_status = 'new' OR attribution_status = 'duplicate' OR attribution_status = 'conflicted' OR attribution_status = 'rejected' OR attribution_status = 'superseded'),
  settled_at BIGINT,
  settled_code TEXT,
  body {blob} NOT NULL
);
