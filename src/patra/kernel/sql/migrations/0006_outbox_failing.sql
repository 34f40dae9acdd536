-- Since when the messages of a channel fail (alert `undelivered`), whatever the backlog of this channel or another.
CREATE INDEX krn_outbox_failing ON krn_outbox (channel, failed_at) WHERE status = 'pending' AND failed_at IS NOT NULL;
