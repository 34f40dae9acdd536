-- name: take_turns
SELECT pg_advisory_xact_lock(hashtext('ing_plan ' || :name))
