-- Dedup keys of the newest events, a row a commit: appended, never changed, and taken over by the ledger's tree behind
-- the writer (`recent`). Only SQLite uses it: there one process writes, and a tree of random keys costs a page an event.
CREATE TABLE att_recent (
  number {id},
  at BIGINT NOT NULL,
  body {blob} NOT NULL
);
