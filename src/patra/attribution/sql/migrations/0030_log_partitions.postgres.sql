-- When the file of a span was last read back and compared, where its rows wait to leave the store together.
ALTER TABLE att_history_file ADD COLUMN verified_at BIGINT;

-- The log of a store that is made now is partitioned by its number, which only grows. A store that was made before keeps the
-- table that it has, filled or empty: other processes may be about to write into it. Of this one nobody else knows yet; the
-- lock and the look at the rows hold should that ever be wrong. `krn_migration` has no row while a backup is restored.
DO '
BEGIN
  IF EXISTS (
    SELECT 1 FROM krn_migration
    WHERE package = ''patra.attribution'' AND number = 1 AND xmin::text <> pg_current_xact_id()::xid::text
  ) THEN
    RETURN;
  END IF;
  LOCK TABLE att_log IN ACCESS EXCLUSIVE MODE;
  IF EXISTS (SELECT 1 FROM att_log) THEN
    RETURN;
  END IF;
  DROP TABLE att_log;
  CREATE SEQUENCE att_log_number_seq;
  CREATE TABLE "att_log" (
    number BIGINT NOT NULL DEFAULT nextval(''att_log_number_seq'') PRIMARY KEY,
    place BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind = ''batch'' OR kind = ''refused'' OR kind = ''tick''),
    app_id TEXT,
    batch_id TEXT,
    code TEXT,
    body {blob}
  ) PARTITION BY RANGE (number);
  ALTER SEQUENCE att_log_number_seq OWNED BY att_log.number;
  CREATE INDEX att_log_batch ON att_log (batch_id) WHERE batch_id IS NOT NULL;
  CREATE INDEX att_log_at ON att_log (at);
  CREATE INDEX att_log_refused ON att_log (number) WHERE kind = ''refused'';
  CREATE TABLE "att_log_rest" PARTITION OF att_log DEFAULT;
  CREATE TABLE "att_log_0" PARTITION OF att_log FOR VALUES FROM (0) TO (1048576);
  CREATE TABLE "att_log_1048576" PARTITION OF att_log FOR VALUES FROM (1048576) TO (2097152);
  CREATE TABLE "att_log_2097152" PARTITION OF att_log FOR VALUES FROM (2097152) TO (3145728);
END';
