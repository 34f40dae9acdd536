-- Drops are found by their decisions when they are verified.
CREATE INDEX att_drop_decision ON att_drop (decision_id);

-- Up to which instant rejected events were purged. Of stores that purged before this was written down, the first one that
-- is left says so; where none is left, all that the log has may be gone.
INSERT INTO att_mark (name, value)
SELECT 'rejects_purged', coalesce((SELECT min(at) + 1 FROM att_reject), (SELECT max(at) + 1 FROM att_log), 0);
