-- Work that one worker holds at a time, for duties and for engines without a task table of their own (kernel/leases.py).
CREATE TABLE krn_lease (
  pool TEXT NOT NULL,
  item TEXT NOT NULL,
  partition_key TEXT NOT NULL,
  priority BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  lease_owner TEXT,
  leased_until BIGINT,
  lease_fence BIGINT NOT NULL DEFAULT 0,
  lease_count BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (pool, item)
);
CREATE INDEX krn_lease_free ON krn_lease (pool, partition_key, priority, due_at, item) WHERE lease_owner IS NULL;
CREATE INDEX krn_lease_held ON krn_lease (pool, leased_until) WHERE lease_owner IS NOT NULL;
