-- The DOI of each record, and its own id without the address around it: the same work is found in every source that has it.
CREATE TABLE ing_record_identifier (
  identifier TEXT NOT NULL,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  PRIMARY KEY (identifier, provenance_code, endpoint_name, provider_id)
);
-- a record that is deleted leaves its identifiers
CREATE INDEX idx_record_identifier ON ing_record_identifier (provenance_code, endpoint_name, provider_id);
