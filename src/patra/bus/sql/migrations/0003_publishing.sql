-- Which released catalogue is in force (B8): one row. Every publisher reads its digest with the routes, in its transaction.
CREATE TABLE bus_catalogue_in_force (
  only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
  version BIGINT NOT NULL,
  digest TEXT NOT NULL,
  adopted_at BIGINT NOT NULL
);
INSERT INTO bus_catalogue_in_force (only_row, version, digest, adopted_at)
SELECT 1, release_id, digest, released_at FROM bus_catalogue
WHERE release_id = (SELECT max(release_id) FROM bus_catalogue);

-- Who handed the event in (B7), beside the `producer` that its envelope claims; NULL for what came before this column.
ALTER TABLE bus_event ADD COLUMN published_by TEXT;
ALTER TABLE bus_refusal ADD COLUMN published_by TEXT;
