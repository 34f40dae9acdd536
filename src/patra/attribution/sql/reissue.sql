-- name: reissues_by_id
-- rows: id int
SELECT r.decision_id, r.record_type, r.issue, r.record_key, r.status, r.at
FROM rows JOIN att_reissue r ON r.decision_id = rows.id

-- name: reissued_by_key
SELECT decision_id FROM att_reissue WHERE record_key = :record_key

-- name: add_reissues
-- rows: decision_id int, record_type text, issue int, record_key text, status text
INSERT INTO att_reissue (decision_id, record_type, issue, record_key, status, at)
SELECT decision_id, record_type, issue, record_key, status, :now FROM rows WHERE true

-- name: move_reissues
-- rows: decision_id int, record_type text, issue int, status text
UPDATE att_reissue SET status = rows.status FROM rows
WHERE att_reissue.decision_id = rows.decision_id AND att_reissue.record_type = rows.record_type
  AND att_reissue.issue = rows.issue AND att_reissue.status = 'new'

-- name: settle_reissued
-- rows: decision_id int
-- The fact counts from now on; its first record stays `conflicted`.
UPDATE att_billable SET status = 'committed' FROM rows
WHERE att_billable.decision_id = rows.decision_id AND att_billable.status = 'conflicted'

-- name: regain_impressions
-- rows: decision_id int
DELETE FROM att_lost_impression WHERE decision_id IN (SELECT decision_id FROM rows)

-- name: impressions_underway
-- rows: closure blob
-- Closures whose lost impression was issued again and is on its way.
SELECT l.closure FROM rows JOIN att_lost_impression l ON l.closure = rows.closure
JOIN att_reissue r ON r.decision_id = l.decision_id
WHERE r.record_type = 'billable_fact' AND r.status = 'new'

-- name: purge_reissues
-- rows: id int
DELETE FROM att_reissue WHERE decision_id IN (SELECT id FROM rows)

-- name: forget_given_up
-- rows: group_key blob, message_key text
-- The message that was given up is no longer outstanding: its records were issued again and arrived.
DELETE FROM krn_outbox WHERE seq IN (
  SELECT o.seq FROM rows JOIN krn_outbox o ON o.group_key = rows.group_key AND o.message_key = rows.message_key
  WHERE o.channel || '' = :channel AND o.status = 'given_up'
)
