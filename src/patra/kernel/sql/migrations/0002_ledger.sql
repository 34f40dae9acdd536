-- One row a claimed key (kernel/ledger.py). `key` is the first half of a sha256.
CREATE TABLE krn_ledger (
  scope TEXT NOT NULL,
  key {blob} NOT NULL,
  fingerprint {blob} NOT NULL,
  cycle BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  held_until BIGINT,
  holder TEXT,
  PRIMARY KEY (scope, key)
) {without_rowid};
CREATE INDEX krn_ledger_expiry ON krn_ledger (scope, expires_at);
