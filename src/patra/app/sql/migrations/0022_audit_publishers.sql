-- Publishers act too: what they publish leaves a row in the audit.
CREATE TABLE app_audit_new (
  id {id},
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'publisher')),
  act TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
);
INSERT INTO app_audit_new (id, at, actor, role, act, subject, detail)
SELECT id, at, actor, role, act, subject, detail FROM app_audit ORDER BY id;
DROP TABLE app_audit;
ALTER TABLE app_audit_new RENAME TO app_audit;
CREATE INDEX app_audit_by_act ON app_audit (act, id);
CREATE INDEX app_audit_by_subject ON app_audit (subject, id);
