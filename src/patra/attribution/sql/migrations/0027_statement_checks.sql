-- What checking a statement found: each is checked once by each version of the checker, and again while it has problems.
CREATE TABLE att_statement_check (
  app_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  hash TEXT NOT NULL,
  checker BIGINT NOT NULL,
  problems BIGINT NOT NULL,
  checked_at BIGINT NOT NULL,
  PRIMARY KEY (app_id, number)
);
