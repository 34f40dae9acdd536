-- The log: every event once for each major version it was published in (B2). `body` is the envelope as JSON; it is NULL
-- once it is past its retention, the row stays and keeps the key unique.
CREATE TABLE bus_event (
  seq {id},
  event_id TEXT NOT NULL,
  major BIGINT NOT NULL,
  minor BIGINT NOT NULL,
  event_type TEXT NOT NULL,
  identity {blob} NOT NULL,
  fingerprint {blob} NOT NULL,
  producer TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  order_key {blob},
  published_at BIGINT NOT NULL,
  body TEXT,
  CONSTRAINT bus_event_identity UNIQUE (identity, major),
  CONSTRAINT bus_event_id UNIQUE (event_id, major)
);
CREATE INDEX bus_event_by_trace ON bus_event (trace_id);
CREATE INDEX bus_event_by_correlation ON bus_event (correlation_id);
CREATE INDEX bus_event_kept ON bus_event (event_type, published_at) WHERE body IS NOT NULL;

CREATE TABLE bus_group (
  group_id {id},
  name TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('active', 'paused')),
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL
);
CREATE TABLE bus_subscription (
  group_id BIGINT NOT NULL REFERENCES bus_group (group_id),
  event_type TEXT NOT NULL,
  versions TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (event_type, group_id, versions)
);

-- What a group has still to handle. A row leaves with the transaction of the handler's effects.
CREATE TABLE bus_delivery (
  group_id BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  order_key {blob},
  state TEXT NOT NULL DEFAULT 'ready' CHECK (state = 'ready' OR state = 'held' OR state = 'waiting' OR state = 'dead'),
  due_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  replay BIGINT NOT NULL DEFAULT 0,
  first_failed_at BIGINT,
  last_failed_at BIGINT,
  error_code TEXT,
  error_detail TEXT,
  PRIMARY KEY (group_id, seq)
) {without_rowid};
CREATE INDEX bus_delivery_due ON bus_delivery (group_id, due_at, seq);
CREATE INDEX bus_delivery_order ON bus_delivery (group_id, order_key, seq) WHERE order_key IS NOT NULL;

-- C§6. One row for a group and an event, however often it fails.
CREATE TABLE bus_dead_letter (
  letter_id TEXT NOT NULL PRIMARY KEY,
  group_id BIGINT NOT NULL,
  group_name TEXT NOT NULL,
  seq BIGINT NOT NULL,
  order_key {blob},
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  event_version TEXT NOT NULL,
  producer TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  error_code TEXT NOT NULL,
  error_detail TEXT NOT NULL,
  reason TEXT NOT NULL,
  attempts BIGINT NOT NULL,
  first_failed_at BIGINT NOT NULL,
  last_failed_at BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'replaying', 'replayed', 'discarded')),
  replay_count BIGINT NOT NULL DEFAULT 0,
  replayed_by TEXT,
  replayed_at BIGINT,
  closed_by TEXT,
  closed_at BIGINT,
  close_reason TEXT,
  envelope TEXT NOT NULL
);
CREATE INDEX bus_dead_letter_backlog ON bus_dead_letter (event_type, state);
CREATE INDEX bus_dead_letter_by_event ON bus_dead_letter (event_id);
CREATE INDEX bus_dead_letter_by_time ON bus_dead_letter (state, last_failed_at, letter_id);

CREATE TABLE bus_freeze (
  event_type TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('open', 'frozen', 'frozen_by_hand')),
  since BIGINT NOT NULL,
  reason TEXT NOT NULL,
  done_by TEXT NOT NULL,
  tolerated BIGINT NOT NULL
);

-- A publish that was refused (A4): one row for what was refused and why, with a count.
CREATE TABLE bus_refusal (
  refusal_key {blob} NOT NULL PRIMARY KEY,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  producer TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  code TEXT NOT NULL,
  place TEXT NOT NULL,
  detail TEXT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  count BIGINT NOT NULL
);
CREATE INDEX bus_refusal_by_time ON bus_refusal (last_at);
CREATE INDEX bus_refusal_by_event ON bus_refusal (event_id);

-- What operators did to the bus: replay, discard, pause, freeze, and who.
CREATE TABLE bus_act (
  act_id {id},
  at BIGINT NOT NULL,
  done_by TEXT NOT NULL,
  act TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX bus_act_by_subject ON bus_act (subject);

-- The catalogue as it was last released on this store, for the evolution check (B4).
CREATE TABLE bus_catalogue (
  release_id {id},
  digest TEXT NOT NULL UNIQUE,
  released_at BIGINT NOT NULL,
  content TEXT NOT NULL
);

-- How far a stream of a broker was read into this store.
CREATE TABLE bus_position (
  stream TEXT NOT NULL PRIMARY KEY,
  incarnation TEXT NOT NULL,
  position BIGINT NOT NULL,
  changed_at BIGINT NOT NULL
);

CREATE TABLE bus_webhook (
  name TEXT NOT NULL PRIMARY KEY,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
