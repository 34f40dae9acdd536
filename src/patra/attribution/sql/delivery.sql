-- name: settle_decisions
-- rows: id int, audit_status text, attribution_status text, settled_at int, settled_code text
INSERT INTO att_status (id, audit_status, attribution_status, settled_at, settled_code)
SELECT id, audit_status, attribution_status, settled_at, settled_code FROM rows WHERE true
ON CONFLICT (id) DO UPDATE SET
  audit_status = CASE WHEN att_status.audit_status IS NULL OR att_status.audit_status = 'new'
    THEN excluded.audit_status ELSE att_status.audit_status END,
  attribution_status = CASE WHEN att_status.attribution_status IS NULL OR att_status.attribution_status = 'new'
    THEN excluded.attribution_status ELSE att_status.attribution_status END,
  settled_at = excluded.settled_at, settled_code = excluded.settled_code

-- name: settle_billables
-- rows: decision_id int, status text
UPDATE att_billable SET status = rows.status FROM rows
WHERE att_billable.decision_id = rows.decision_id AND att_billable.status = 'new'

-- name: superseding_untold
-- rows: id int, settled_at int, settled_code text
UPDATE att_status SET settled_at = rows.settled_at,
  settled_code = CASE WHEN att_status.settled_code = :exhausted THEN att_status.settled_code ELSE rows.settled_code END
FROM rows WHERE att_status.id = rows.id
