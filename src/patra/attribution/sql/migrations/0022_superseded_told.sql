-- When an archive outside the store was told again, on an operator's order, that a record was superseded.
ALTER TABLE att_status ADD COLUMN superseded_told_at BIGINT;
