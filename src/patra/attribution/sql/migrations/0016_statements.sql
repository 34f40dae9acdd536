-- Prices: rows are added and never changed; the number of a row is its version.
CREATE TABLE att_rate (
  version {id},
  app_id TEXT NOT NULL,
  placement TEXT NOT NULL,
  creative TEXT NOT NULL,
  billable_type TEXT NOT NULL CHECK (billable_type = 'billable_impression' OR billable_type = 'billable_click'),
  currency TEXT NOT NULL,
  price_micros BIGINT NOT NULL,
  valid_from BIGINT NOT NULL,
  valid_to BIGINT,
  created_at BIGINT NOT NULL
);

-- Closed periods: one row a statement, never changed.
CREATE TABLE att_statement (
  app_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  period TEXT NOT NULL,
  begin_at BIGINT NOT NULL,
  end_at BIGINT NOT NULL,
  closed_at BIGINT NOT NULL,
  hash TEXT NOT NULL,
  body {blob} NOT NULL,
  PRIMARY KEY (app_id, number)
);
CREATE UNIQUE INDEX att_statement_period ON att_statement (app_id, period);

-- Their facts as settled, some thousand a row, compressed.
CREATE TABLE att_statement_page (
  app_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  page BIGINT NOT NULL,
  body {blob} NOT NULL,
  PRIMARY KEY (app_id, number, page)
);

-- Which statement a fact is in: in one, for ever.
CREATE TABLE att_statement_fact (
  decision_id BIGINT NOT NULL PRIMARY KEY,
  app_id TEXT NOT NULL,
  number BIGINT NOT NULL
);
