-- Who did what, when: one row for every operator's act, written in the transaction of the act.
CREATE TABLE app_audit (
  id {id},
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  act TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX app_audit_by_act ON app_audit (act, id);
CREATE INDEX app_audit_by_subject ON app_audit (subject, id);
