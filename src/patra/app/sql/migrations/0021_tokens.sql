-- Bearer tokens of the HTTP interface: only their sha256. Rotation adds a row of the same name and lets the old one expire.
CREATE TABLE app_token (
  token_hash TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'publisher')),
  scope TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  used_at BIGINT
);
CREATE INDEX app_token_by_name ON app_token (name, created_at);
