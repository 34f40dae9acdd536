-- Which secrets the installation lets the pack of a source read (by reference), and where it may send them. Rows stay:
-- a grant that is revoked says by whom and when.
CREATE TABLE ing_secret_grant (
  grant_id TEXT NOT NULL PRIMARY KEY,
  provenance_code TEXT NOT NULL,
  reference TEXT NOT NULL,
  hosts TEXT NOT NULL,
  allowed_by TEXT NOT NULL,
  allowed_at BIGINT NOT NULL,
  revoked_by TEXT,
  revoked_at BIGINT
);
CREATE UNIQUE INDEX uk_secret_grant ON ing_secret_grant (provenance_code, reference) WHERE revoked_at IS NULL;
