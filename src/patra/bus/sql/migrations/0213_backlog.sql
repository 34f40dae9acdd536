-- What freezes a type (B9: nothing of an endpoint or a remote consumer) is counted along an index of its own, however
-- many other dead letters the type has.
CREATE INDEX bus_dead_letter_freezing ON bus_dead_letter (event_type)
WHERE (state = 'open' OR state = 'replaying') AND remote = 0 AND group_name NOT LIKE 'webhook.%';

-- A group that was forgotten took the replays that waited in its line with it: those dead letters are open again. One that
-- waits in the line of a group that joined again under the same name, which is another row, is on its way.
INSERT INTO krn_move (subject, machine, was, on_event, became, reason_code, moved_at, rule_version)
SELECT letter_id, 'bus_dead_letter', 'replaying', 'failed_again', 'open', 'b_group_unknown',
  COALESCE(replayed_at, last_failed_at), 'b_dead_letter_v1'
FROM bus_dead_letter WHERE state = 'replaying' AND NOT EXISTS (
  SELECT 1 FROM bus_group g JOIN bus_delivery d ON d.group_id = g.group_id
  WHERE g.name = bus_dead_letter.group_name AND d.seq = bus_dead_letter.seq);
UPDATE bus_dead_letter SET state = 'open' WHERE state = 'replaying' AND NOT EXISTS (
  SELECT 1 FROM bus_group g JOIN bus_delivery d ON d.group_id = g.group_id
  WHERE g.name = bus_dead_letter.group_name AND d.seq = bus_dead_letter.seq);
