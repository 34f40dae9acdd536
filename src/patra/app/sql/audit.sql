-- name: audit_page
SELECT id, at, actor, role, act, subject, detail
FROM app_audit
WHERE id < :before AND (:act = '' OR act = :act) AND (:subject = '' OR subject = :subject)
ORDER BY id DESC
LIMIT :limit
