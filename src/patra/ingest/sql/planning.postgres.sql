-- name: take_turns
SELECT pg_advisory_xact_lock(hashtext('ing_plan ' || :name))

-- name: pending_exports
-- As the shared statement; what is done for a plan is asked by its key, in the order of an index, or all tasks are read.
WITH own AS (SELECT job_id, tick, plan_id, fired_at, then_status FROM ing_schedule_history
  WHERE plan_id IS NOT NULL AND then_status IN ('PENDING', 'RUNNING', 'SUPERSEDED')),
busy AS (SELECT own.job_id, own.tick, own.fired_at FROM own WHERE
  EXISTS (SELECT 1 FROM ing_plan p WHERE p.plan_id = own.plan_id
    AND p.status_code IN ('DRAFT','SLICING','PARTIAL') OFFSET 0)
  OR EXISTS (SELECT 1 FROM ing_task t WHERE t.plan_id BETWEEN own.plan_id AND own.plan_id
    AND t.status_code IN ('QUEUED','DISPATCHED','EXECUTING') ORDER BY t.plan_id OFFSET 0)
  OR EXISTS (SELECT 1 FROM ing_reslice_request r WHERE r.plan_id = own.plan_id AND r.status_code = 'OPEN'))
SELECT h.job_id, h.tick, h.then_cfg,
  (SELECT count(*) FROM own CROSS JOIN LATERAL (SELECT 1 FROM ing_task t
      WHERE t.plan_id BETWEEN own.plan_id AND own.plan_id AND t.status_code = 'FAILED' ORDER BY t.plan_id OFFSET 0) f
    WHERE own.job_id = h.job_id AND own.tick <= h.tick AND own.then_status <> 'SUPERSEDED') AS failed,
  (SELECT count(*) FROM busy WHERE busy.job_id = h.job_id AND busy.tick <= h.tick) AS unfinished
FROM ing_schedule_history h
WHERE (h.then_status = 'PENDING' OR (h.then_status = 'RUNNING' AND h.then_at < :lost))
  AND h.tick = (SELECT max(o.tick) FROM ing_schedule_history o WHERE o.job_id = h.job_id
    AND o.then_status IN ('PENDING', 'RUNNING')
    AND NOT EXISTS (SELECT 1 FROM busy WHERE busy.job_id = o.job_id AND busy.tick <= o.tick AND busy.fired_at > :late))
ORDER BY h.job_id
