-- A version of a pack on trial: a share of the plans of its source is compiled from it (ch. 3.5).
CREATE TABLE reg_pack_stage (
  provenance_code TEXT NOT NULL PRIMARY KEY,
  version_no BIGINT NOT NULL,
  share_percent BIGINT NOT NULL CHECK (share_percent BETWEEN 1 AND 100),
  staged_by TEXT NOT NULL,
  staged_at BIGINT NOT NULL
);
