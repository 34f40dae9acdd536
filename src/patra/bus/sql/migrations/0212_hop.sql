-- What happened to an event on its way through a group, beside the row that waits: to whom it was handed, tries that
-- failed, by whom it was handled and what that wrote, where the handler said so.
CREATE TABLE bus_hop (
  hop_id {id},
  event_id TEXT NOT NULL,
  group_name TEXT NOT NULL,
  what TEXT NOT NULL CHECK (what IN ('delivered', 'attempt_failed', 'handled')),
  at BIGINT NOT NULL,
  done_by TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX bus_hop_by_event ON bus_hop (event_id, hop_id);
CREATE INDEX bus_hop_by_time ON bus_hop (at);
