-- How far a new major version of a type has come (B8): shadow, dual (for some tenants, or a share), retiring, retired.
CREATE TABLE bus_stage (
  event_type TEXT NOT NULL,
  major BIGINT NOT NULL,
  stage TEXT NOT NULL CHECK (stage IN ('shadow', 'dual', 'retiring', 'retired')),
  tenants TEXT NOT NULL DEFAULT '[]',
  share BIGINT NOT NULL DEFAULT 0,
  changed_by TEXT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (event_type, major)
);
