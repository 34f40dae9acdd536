-- What is counted of a group is counted along these, whatever the length of its line.
CREATE INDEX bus_delivery_failing ON bus_delivery (group_id) WHERE attempts > 0 AND state <> 'dead';
CREATE INDEX bus_delivery_held ON bus_delivery (group_id) WHERE state = 'held';
CREATE INDEX bus_dead_letter_by_group ON bus_dead_letter (group_name, state);
