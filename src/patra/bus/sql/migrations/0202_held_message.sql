-- Messages of a stream that the process which read them could not: a type or major version of a catalogue that is newer
-- than its own (B8). They wait here, in the stream's order, for a process that knows them.
CREATE TABLE bus_held_message (
  held_id {id},
  stream TEXT NOT NULL,
  position BIGINT NOT NULL,
  event_type TEXT NOT NULL,
  major BIGINT NOT NULL,
  body TEXT NOT NULL,
  published_by TEXT NOT NULL,
  detail TEXT NOT NULL,
  held_at BIGINT NOT NULL
);
CREATE INDEX bus_held_message_by_type ON bus_held_message (event_type, major, held_id);
