-- A letter keeps where its handler failed (redacted), and the error without what differs from event to event, by which
-- letters are grouped. Empty for letters of before.
ALTER TABLE bus_dead_letter ADD COLUMN traceback TEXT NOT NULL DEFAULT '';
ALTER TABLE bus_dead_letter ADD COLUMN error_shape TEXT NOT NULL DEFAULT '';
