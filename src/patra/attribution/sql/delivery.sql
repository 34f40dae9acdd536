-- name: settle_decisions
-- rows: id int, audit_status text, attribution_status text, settled_at int, settled_code text
UPDATE att_decision SET
  audit_status = CASE WHEN att_decision.audit_status = 'new' AND rows.audit_status IS NOT NULL
    THEN rows.audit_status ELSE att_decision.audit_status END,
  attribution_status = CASE WHEN att_decision.attribution_status = 'new' AND rows.attribution_status IS NOT NULL
    THEN rows.attribution_status ELSE att_decision.attribution_status END,
  settled_at = rows.settled_at, settled_code = rows.settled_code
FROM rows WHERE att_decision.id = rows.id

-- name: settle_billables
-- rows: key blob, status text
UPDATE att_billable SET status = rows.status FROM rows WHERE att_billable.key = rows.key AND att_billable.status = 'new'
