-- The index finds batches too from now on: it is filled again.
DELETE FROM att_locator;
DELETE FROM att_gap;
UPDATE att_mark SET value = (SELECT coalesce(min(item) - 1, 0) FROM att_decision) WHERE name = 'indexed';
