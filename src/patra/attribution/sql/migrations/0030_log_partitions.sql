-- When the file of a span was last read back and compared, where its rows wait to leave the store together (a partition of
-- the log, which only PostgreSQL has).
ALTER TABLE att_history_file ADD COLUMN verified_at BIGINT;
