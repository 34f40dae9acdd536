-- What other stores that read and write the same stream have told of themselves: types that they froze, and the
-- catalogue that they adopted. `store_id` is how they know each other.
CREATE TABLE bus_store (
  only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
  store_id TEXT NOT NULL
);
CREATE TABLE bus_remote_freeze (
  event_type TEXT NOT NULL,
  store_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  since BIGINT NOT NULL,
  PRIMARY KEY (event_type, store_id)
);
CREATE TABLE bus_remote_catalogue (
  store_id TEXT NOT NULL PRIMARY KEY,
  digest TEXT NOT NULL,
  content TEXT NOT NULL,
  adopted_at BIGINT NOT NULL
);
