-- Records are looked up by their whole key. On PostgreSQL, as long as nothing is known of a table's contents, every index
-- that begins with source and endpoint promises one row, and the wrong one was taken, which reads the whole endpoint.
-- Now the primary key is the only one that begins so.
DROP INDEX idx_record_changed;
DROP INDEX idx_record_refresh;
CREATE INDEX idx_record_changed ON ing_record ((provenance_code || '/' || endpoint_name), changed_at);
CREATE INDEX idx_record_refresh ON ing_record ((provenance_code || '/' || endpoint_name), refresh_checked_at);
