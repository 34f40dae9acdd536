-- The built-in archive: one row an item of the log, with all decisions on it and all that their records are made of,
-- compressed. A decision's number is that of its item and its place there. `archived`: the store itself is the archive,
-- so its records were committed with it; otherwise they are new until `att_status` says what became of them.
CREATE TABLE att_decision (
  item {id},
  at BIGINT NOT NULL,
  archived BIGINT NOT NULL,
  body {blob} NOT NULL
);

-- Where the records of a decision stand, if not where they were born; only along the edges of §3.8.27. `settled_at` and
-- `settled_code` say when an archive outside the store took them, or why it did not.
CREATE TABLE att_status (
  id BIGINT NOT NULL PRIMARY KEY,
  audit_status TEXT
    CHECK (audit_status = 'committed' OR audit_status = 'new' OR audit_status = 'duplicate' OR audit_status = 'conflicted' OR audit_status = 'rejected' OR audit_status = 'superseded'),
  attribution_status TEXT
    CHECK (attribution_status = 'committed' OR attribution_status = 'new' OR attribution_status = 'duplicate' OR attribution_status = 'conflicted' OR attribution_status = 'rejected' OR attribution_status = 'superseded'),
  settled_at BIGINT,
  settled_code TEXT
) {without_rowid};

-- Dedup keys that the ledger has forgotten, and how many cycles they had (F9).
CREATE TABLE att_past (
  key {blob} NOT NULL PRIMARY KEY,
  cycle BIGINT NOT NULL
) {without_rowid};

-- Where the keys of decisions lead: a run is the index of some items, cut by the first byte of each key's hash; `last`
-- is its newest item. Filled behind the writer.
CREATE TABLE att_locator (
  bucket BIGINT NOT NULL,
  run BIGINT NOT NULL,
  last BIGINT NOT NULL,
  body {blob} NOT NULL,
  PRIMARY KEY (bucket, run)
);
CREATE INDEX att_locator_last ON att_locator (last);

-- Items that were missing when the index passed them: numbers drawn earlier and committed later, or never.
CREATE TABLE att_gap (
  item BIGINT NOT NULL PRIMARY KEY,
  seen_at BIGINT NOT NULL
);

INSERT INTO att_mark (name, value) VALUES ('indexed', 0), ('runs', 0);
