-- What was committed and is still to be delivered (kernel/outbox.py). A delivered message leaves the table.
CREATE TABLE krn_outbox (
  seq {id},
  channel TEXT NOT NULL,
  group_key {blob} NOT NULL,
  message_key TEXT NOT NULL,
  payload {blob} NOT NULL,
  appended_at BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  attempt BIGINT NOT NULL DEFAULT 0,
  failed_at BIGINT,
  holder TEXT,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'refused', 'given_up')),
  reason TEXT
);
CREATE INDEX krn_outbox_due ON krn_outbox (channel, due_at, seq) WHERE status = 'pending';
CREATE INDEX krn_outbox_group ON krn_outbox (channel, group_key, seq) WHERE status = 'pending';
CREATE INDEX krn_outbox_dead ON krn_outbox (channel, seq) WHERE status <> 'pending';
