-- Publishers act too: what they publish leaves a row in the audit.
ALTER TABLE app_audit DROP CONSTRAINT app_audit_role_check;
ALTER TABLE app_audit ADD CONSTRAINT app_audit_role_check
  CHECK (role IN ('viewer', 'operator', 'admin', 'publisher')) NOT VALID;
