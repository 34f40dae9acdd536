-- The head of a group by its key alone: an index that began with the channel looked no better to PostgreSQL than that of what
-- is due, and the wrong one of them reads the whole channel.
CREATE INDEX krn_outbox_in_group ON krn_outbox (group_key, seq) WHERE status = 'pending';
DROP INDEX krn_outbox_group;
