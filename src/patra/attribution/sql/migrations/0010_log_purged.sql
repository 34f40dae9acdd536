-- Up to which instant lines of the log were purged; no row: none were. Of stores that purged before this was written down,
-- the first line that is left says so, where a decision or a closure is older.
INSERT INTO att_mark (name, value)
SELECT 'log_purged', l.at FROM att_log l
WHERE l.number = (SELECT min(number) FROM att_log) AND (
  EXISTS (SELECT 1 FROM att_decision d WHERE d.item < l.number)
  OR EXISTS (SELECT 1 FROM att_closure c WHERE c.opened_at < l.at - 3600000000)
);
