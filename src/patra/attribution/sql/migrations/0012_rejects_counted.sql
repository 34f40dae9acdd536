-- A rejected event is keyed by app, batch, index, code and digest, and an identical one raises its own count. Rows of
-- earlier versions have no count of their own: theirs is that of their audit.
ALTER TABLE att_reject ADD COLUMN count BIGINT;

-- The index finds decisions that were taken later by the batch of their source event, and cycles beyond the ninth by the
-- dedup key of all: it is filled again.
DELETE FROM att_locator;
DELETE FROM att_gap;
UPDATE att_mark SET value = (SELECT coalesce(min(item) - 1, 0) FROM att_decision) WHERE name = 'indexed';
