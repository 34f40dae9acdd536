-- Sessions of the console: the cookie is kept as its sha256 only, with the token it was signed in with, by its hash.
CREATE TABLE app_session (
  cookie_hash TEXT NOT NULL PRIMARY KEY,
  token_hash TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
);
CREATE INDEX app_session_by_seen ON app_session (seen_at);
