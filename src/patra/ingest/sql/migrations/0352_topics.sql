-- Searches whose records are noted under a topic, and those records: exports may hold one topic of a store with several.
CREATE TABLE ing_topic_selection (
  selection_key TEXT NOT NULL,
  topic TEXT NOT NULL,
  PRIMARY KEY (selection_key, topic)
);
CREATE TABLE ing_topic_record (
  topic TEXT NOT NULL,
  provenance_code TEXT NOT NULL,
  endpoint_name TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  PRIMARY KEY (topic, provenance_code, endpoint_name, provider_id)
);
-- a record that is deleted leaves its topics
CREATE INDEX idx_topic_record ON ing_topic_record (provenance_code, endpoint_name, provider_id);
ALTER TABLE ing_schedule ADD COLUMN topic TEXT NOT NULL DEFAULT '';
