-- name: packs_from
SELECT item, archived, body FROM att_decision WHERE item >= :item ORDER BY item LIMIT :limit

-- name: packs_of_items
-- rows: item int
SELECT d.item, d.archived, d.body FROM rows JOIN att_decision d ON d.item = rows.item

-- name: statuses_by_id
-- rows: id int
SELECT s.id, s.audit_status, s.attribution_status, s.settled_code, s.settled_at, s.superseded_told_at FROM rows JOIN att_status s ON s.id = rows.id

-- name: billables_by_id
-- rows: id int
SELECT b.decision_id, b.status FROM rows JOIN att_billable b ON b.decision_id = rows.id

-- name: something_due
-- By the earliest: of the rows before an instant the planner may believe that they are everywhere, and look for one in
-- the table itself, to its end where there is none.
SELECT 1 WHERE (SELECT min(due_at) FROM att_closure WHERE due_at IS NOT NULL) <= :now

-- name: underway
-- rows: group_key blob, message_key text
SELECT o.message_key FROM rows JOIN krn_outbox o ON o.group_key = rows.group_key AND o.message_key = rows.message_key
WHERE o.channel || '' = :channel AND o.status = 'pending'

-- name: deliveries
SELECT status, count(*) FROM krn_outbox WHERE channel = :channel GROUP BY status
