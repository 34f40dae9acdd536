-- Record keys that more than one payload may have, with the digest of the payload that the built-in archive took first.
CREATE TABLE att_record_key (
  key {blob} NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL,
  decision_id BIGINT NOT NULL
) {without_rowid};
