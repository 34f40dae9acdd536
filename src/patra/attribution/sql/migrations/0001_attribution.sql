-- Module F. Keys are the first half of a sha256; free text of events stands in JSON (blob), since PostgreSQL's text
-- holds no U+0000.

-- What came in, in the order in which it was decided: batches as received, refused ones too, and the ticks that applied
-- deadlines. `patra attribution log export` writes it; `replay` reads that.
CREATE TABLE att_log (
  number {id},
  place BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'batch' OR kind = 'refused' OR kind = 'tick'),
  app_id TEXT,
  batch_id TEXT,
  code TEXT,
  body {blob}
);
CREATE INDEX att_log_batch ON att_log (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX att_log_at ON att_log (at);

-- One row a render attempt. `due_at` is the next deadline, of the closure or of its click; NULL when there is none.
CREATE TABLE att_closure (
  key {blob} NOT NULL PRIMARY KEY,
  app_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state = 'open' OR state = 'closed_success' OR state = 'closed_failure'),
  source TEXT CHECK (source = 'impression' OR source = 'error' OR source = 'system_timeout_synthesized'),
  opened_at BIGINT NOT NULL,
  due_at BIGINT,
  click TEXT CHECK (click = 'pending' OR click = 'billable' OR click = 'lapsed'),
  click_due BIGINT,
  timeout_id BIGINT,
  body {blob} NOT NULL
) {without_rowid};
CREATE INDEX att_closure_due ON att_closure (due_at) WHERE due_at IS NOT NULL;

-- The facts that money is settled on: one row a billing key, never changed but for the status of its record.
CREATE TABLE att_billable (
  key {blob} NOT NULL PRIMARY KEY,
  decision_id BIGINT NOT NULL,
  app_id TEXT NOT NULL,
  billable_type TEXT NOT NULL CHECK (billable_type = 'billable_impression' OR billable_type = 'billable_click'),
  opportunity {blob} NOT NULL,
  fact_at BIGINT NOT NULL,
  status TEXT NOT NULL CHECK (status = 'committed' OR status = 'new' OR status = 'duplicate' OR status = 'conflicted' OR status = 'rejected' OR status = 'superseded')
) {without_rowid};
CREATE INDEX att_billable_at ON att_billable (fact_at);

-- The placement of an opportunity, for settlement by placement: the first `opportunity_created` of it says.
CREATE TABLE att_opportunity (
  key {blob} NOT NULL PRIMARY KEY,
  placement {blob} NOT NULL
) {without_rowid};

-- Audits of dropped events, which may happen again: the first is among the decisions, the others are counted.
CREATE TABLE att_drop (
  key {blob} NOT NULL PRIMARY KEY,
  decision_id BIGINT NOT NULL,
  count BIGINT NOT NULL
) {without_rowid};

-- Rejected events (F19): those that lack their responseReference are kept raw, the others leave a digest.
CREATE TABLE att_reject (
  key {blob} NOT NULL PRIMARY KEY,
  decision_id BIGINT NOT NULL,
  at BIGINT NOT NULL,
  app_id TEXT NOT NULL,
  batch_id TEXT NOT NULL,
  event_index BIGINT NOT NULL,
  code TEXT NOT NULL,
  server_event_key TEXT NOT NULL,
  digest TEXT NOT NULL,
  raw {blob}
) {without_rowid};
CREATE INDEX att_reject_at ON att_reject (at);
CREATE INDEX att_reject_batch ON att_reject (batch_id);

-- Keys of apps, hashed.
CREATE TABLE att_app_key (
  key_hash {blob} NOT NULL PRIMARY KEY,
  app_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);

-- Where the background duties stand.
CREATE TABLE att_mark (
  name TEXT NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
);
