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

-- name: claim_record_keys
-- rows: key blob, digest text, decision_id int
INSERT INTO att_record_key (key, digest, decision_id) SELECT key, digest, decision_id FROM rows WHERE true
ON CONFLICT (key) DO UPDATE SET digest = att_record_key.digest
RETURNING key, digest

-- name: lose_impressions
-- rows: closure blob, decision_id int
INSERT INTO att_lost_impression (closure, decision_id) SELECT closure, decision_id FROM rows WHERE true
ON CONFLICT (closure) DO NOTHING

-- name: lost_impressions
-- rows: closure blob
SELECT l.closure FROM rows JOIN att_lost_impression l ON l.closure = rows.closure

-- name: superseding_told
-- rows: id int
-- Why the archive lacked a record is kept where another of them was issued again.
UPDATE att_status SET superseded_told_at = :now,
  settled_code = CASE WHEN att_status.audit_status = 'conflicted' OR att_status.audit_status = 'rejected'
    THEN att_status.settled_code ELSE NULL END
FROM rows WHERE att_status.id = rows.id AND att_status.attribution_status = 'superseded'

-- name: superseding_untold
-- rows: id int, settled_at int, settled_code text
UPDATE att_status SET settled_at = rows.settled_at,
  settled_code = CASE WHEN att_status.settled_code = :exhausted THEN att_status.settled_code ELSE rows.settled_code END
FROM rows WHERE att_status.id = rows.id
