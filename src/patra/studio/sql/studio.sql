-- name: task
SELECT * FROM stu_task WHERE task_id = :task_id

-- name: task_of_run
SELECT * FROM stu_task WHERE run_id = :run_id

-- name: tenant_of_run
SELECT tenant_id FROM stu_task WHERE run_id = :id

-- name: tenant_of_task
SELECT tenant_id FROM stu_task WHERE task_id = :id

-- name: tenants_of_job
SELECT t.tenant_id FROM stu_job j JOIN stu_task t ON t.run_id = j.run_id WHERE j.job_id = :id
UNION SELECT t.tenant_id FROM stu_work w JOIN stu_task t ON t.run_id = w.run_id WHERE w.job_id = :id

-- name: any_task
SELECT 1 FROM stu_task LIMIT 1

-- name: tasks_recent
SELECT t.task_id, t.title, t.language, t.quality, t.submitted_at, t.film_uri, t.run_id, r.stage, r.epoch, r.reason_code
FROM stu_task t LEFT JOIN stu_run r ON r.task_id = t.task_id
WHERE :tenant_id = '' OR t.tenant_id = :tenant_id ORDER BY t.submitted_at DESC, t.task_id LIMIT :limit

-- name: task_published
UPDATE stu_task SET film_uri = :uri, film_sha256 = :sha256, film_ms = :ms, published_at = :now WHERE task_id = :task_id

-- name: task_error
UPDATE stu_task SET errors = errors + 1 WHERE task_id = :task_id

-- name: run
SELECT * FROM stu_run WHERE run_id = :run_id

-- name: run_held
UPDATE stu_run SET changed_at = changed_at WHERE run_id = :run_id RETURNING stage, epoch

-- name: run_next_epoch
UPDATE stu_run SET epoch = epoch + 1, plan_prompts = CASE WHEN plan_version = :plan_version THEN plan_prompts ELSE 0 END,
  plan_version = :plan_version, resumed_at = :now WHERE run_id = :run_id

-- name: run_planned
UPDATE stu_run SET plan_prompts = :prompts WHERE run_id = :run_id

-- name: plan
SELECT body FROM stu_plan WHERE plan_id = :plan_id

-- name: plan_shots
SELECT shots FROM stu_plan WHERE plan_id = :plan_id

-- name: plan_prompts
SELECT prompts FROM stu_plan WHERE plan_id = :plan_id

-- name: edits_of_run
SELECT shot_id, source_start, source_end, changes, edited_by, edited_at FROM stu_edit WHERE run_id = :run_id ORDER BY number

-- name: jobs_of_run
SELECT * FROM stu_job WHERE run_id = :run_id AND plan_id = :plan_id AND (:shot_id = '' OR shot_id = :shot_id)
ORDER BY shot_index, job_id

-- name: jobs_count
SELECT count(*), COALESCE(sum(CASE WHEN state IN ('succeeded', 'failed', 'cancelled') THEN 0 ELSE 1 END), 0),
  COALESCE(sum(CASE WHEN worker_type = 'video' AND state = 'succeeded' THEN 1 ELSE 0 END), 0)
FROM stu_job WHERE run_id = :run_id AND plan_id = :plan_id

-- name: job
SELECT * FROM stu_job WHERE job_id = :job_id

-- name: job_result
UPDATE stu_job SET artifacts = :artifacts, error_code = :error_code, profile_id = :profile_id WHERE job_id = :job_id

-- name: jobs_set_epoch
-- rows: job_id text
UPDATE stu_job SET epoch = :epoch, artifacts = '[]', error_code = '' FROM rows WHERE stu_job.job_id = rows.job_id

-- name: work
SELECT * FROM stu_work WHERE job_id = :job_id

-- name: work_create
UPDATE stu_work SET epoch = :epoch, profile_id = :profile_id, chain = :chain, body = :body, context = :context,
  priority = :priority, due_at = :now, tries = 0, losses = 0, stop = 0, lease_owner = NULL, leased_until = NULL
WHERE job_id = :job_id

-- name: work_claimed
UPDATE stu_work SET attempt = attempt + 1, tries = tries + 1, context = :context WHERE job_id = :job_id

-- name: work_requeued
UPDATE stu_work SET due_at = :due_at, profile_id = :profile_id, chain = :chain, tries = :tries WHERE job_id = :job_id

-- name: work_lost
-- rows: job_id text
UPDATE stu_work SET losses = losses + 1 FROM rows WHERE stu_work.job_id = rows.job_id RETURNING stu_work.job_id, losses

-- name: work_stop_run
UPDATE stu_work SET stop = 1 WHERE run_id = :run_id AND epoch <= :epoch

-- name: works_of_run
SELECT job_id, state FROM stu_work WHERE run_id = :run_id AND epoch <= :epoch

-- name: work_due
SELECT 1 FROM stu_work WHERE worker_type = :worker_type AND lease_owner IS NULL AND state = 'queued' AND due_at <= :now LIMIT 1

-- name: work_expired
SELECT 1 WHERE (SELECT min(leased_until) FROM stu_work WHERE lease_owner IS NOT NULL) < :now

-- name: films_due
SELECT 1 FROM stu_film WHERE (lease_owner IS NULL AND state = 'wanted' AND due_at <= :now)
  OR (lease_owner IS NOT NULL AND leased_until < :now) LIMIT 1

-- name: parts_of_run
SELECT job_id, shot_id, worker_type, epoch, status, profile_id, artifacts, error_code FROM stu_part
WHERE run_id = :run_id ORDER BY job_id

-- name: film
SELECT * FROM stu_film WHERE run_id = :run_id

-- name: film_held
UPDATE stu_film SET due_at = due_at WHERE run_id = :run_id RETURNING state, epoch

-- name: film_again
UPDATE stu_film SET epoch = :epoch, context = :context, plan_id = :plan_id, parts = :parts, tries = 0, error_code = '', error = '', due_at = :now,
  lease_owner = NULL, leased_until = NULL WHERE run_id = :run_id

-- name: film_postponed
UPDATE stu_film SET due_at = :due_at, tries = :tries, error_code = :error_code, error = :error WHERE run_id = :run_id

-- name: film_waits
UPDATE stu_film SET due_at = :due_at WHERE run_id = :run_id

-- name: film_part_came
UPDATE stu_film SET due_at = :now WHERE run_id = :run_id AND state = 'wanted' AND tries = 0 AND due_at > :now

-- name: film_made
UPDATE stu_film SET manifest = :manifest WHERE run_id = :run_id

-- name: notes_of_run
SELECT note_id, event_id, at, kind, subject, detail, cost_micros, work_ms FROM stu_note
WHERE run_id = :run_id AND note_id > :since ORDER BY note_id LIMIT :limit

-- name: note_of_letter
SELECT 1 FROM stu_note WHERE run_id = :run_id AND event_id = :event_id AND kind = :kind AND subject = :subject AND at = :at LIMIT 1

-- name: run_totals
SELECT COALESCE(sum(cost_micros), 0), COALESCE(sum(work_ms), 0) FROM stu_note WHERE run_id = :run_id

-- name: job_states
SELECT worker_type, state, count(*) FROM stu_job WHERE run_id = :run_id AND plan_id = :plan_id GROUP BY worker_type, state

-- name: artifact_note
-- rows: sha256 text, artifact_id text, run_id text, job_id text, kind text
INSERT INTO stu_artifact (sha256, artifact_id, run_id, job_id, kind, noted_at)
SELECT sha256, artifact_id, run_id, job_id, kind, :now FROM rows WHERE true
ON CONFLICT (sha256, run_id, job_id, kind) DO NOTHING

-- name: artifacts_by_key
SELECT sha256, artifact_id, run_id, job_id, kind, noted_at FROM stu_artifact WHERE sha256 = :key
UNION
SELECT sha256, artifact_id, run_id, job_id, kind, noted_at FROM stu_artifact WHERE artifact_id = :key
ORDER BY noted_at, run_id, job_id LIMIT :limit

-- name: tasks_by_chapter
SELECT task_id FROM stu_task WHERE chapter_sha256 = :key ORDER BY task_id LIMIT :limit

-- name: jobs_page
SELECT * FROM stu_job WHERE run_id = :run_id ORDER BY shot_index, job_id LIMIT :limit

-- name: work_state
SELECT state, attempt, due_at, lease_owner, leased_until FROM stu_work WHERE job_id = :job_id

-- name: earlier_results
SELECT job_id, epoch FROM stu_job WHERE run_id = :run_id AND plan_id = :plan_id
  AND (state = 'succeeded' OR (state = 'failed' AND error_code <> ''))

-- name: earlier_films_given_up
SELECT f.run_id FROM stu_run r JOIN stu_film f ON f.run_id = r.run_id
WHERE r.stage = 'composing' AND f.state = 'failed' AND f.epoch = r.epoch
