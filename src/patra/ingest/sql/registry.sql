-- name: registry_source
SELECT provenance_code, provenance_name, description, enabled, pack_version, pack_hash, version_no, cfg, created_at, updated_at
FROM reg_provenance WHERE provenance_code = :source

-- name: registry_stamp
SELECT p.version_no, p.pack_hash, p.updated_at, (SELECT count(*) FROM reg_pack_stage s WHERE s.provenance_code = :source)
FROM reg_provenance p WHERE p.provenance_code = :source

-- name: registry_sources
SELECT p.provenance_code, p.provenance_name, p.enabled, p.pack_version, p.pack_hash, p.version_no, p.updated_at,
  (SELECT count(*) FROM reg_prov_endpoint_def e WHERE e.provenance_code = p.provenance_code) AS endpoints,
  (SELECT count(*) FROM reg_prov_schedule s
   LEFT JOIN ing_schedule_switch w ON w.job_id = s.provenance_code || '/' || s.schedule_name
   WHERE s.provenance_code = p.provenance_code AND coalesce(w.enabled, s.enabled) = 1)
  + (SELECT count(*) FROM ing_schedule o LEFT JOIN ing_schedule_switch w ON w.job_id = o.job_id
     WHERE o.provenance_code = p.provenance_code AND coalesce(w.enabled, 1) = 1) AS schedules
FROM reg_provenance p ORDER BY p.provenance_code

-- name: pack_versions
SELECT version_no, pack_version, pack_hash, file_name, loaded_at, loaded_by
FROM reg_pack WHERE provenance_code = :source ORDER BY version_no

-- name: pack_version
SELECT version_no, pack_version, pack_hash, file_name, document, marks, loaded_at, loaded_by
FROM reg_pack WHERE provenance_code = :source AND version_no = :version_no

-- name: last_pack_version
SELECT max(version_no) FROM reg_pack WHERE provenance_code = :source

-- name: dictionary
SELECT type_code, item_code, enabled FROM sys_dict_item

-- name: schedules
SELECT s.provenance_code, s.schedule_name, coalesce(w.enabled, s.enabled) * p.enabled AS enabled, s.cfg,
  coalesce(w.switched_at, p.created_at) AS since, 0 AS own, '' AS then_cfg, s.position, '' AS topic
FROM reg_prov_schedule s JOIN reg_provenance p ON p.provenance_code = s.provenance_code
LEFT JOIN ing_schedule_switch w ON w.job_id = s.provenance_code || '/' || s.schedule_name
UNION ALL
SELECT o.provenance_code, o.schedule_name, coalesce(w.enabled, 1) * coalesce(p.enabled, 0) AS enabled, o.cfg,
  coalesce(w.switched_at, o.created_at) AS since, 1 AS own, o.then_cfg, 1000000 AS position, o.topic
FROM ing_schedule o LEFT JOIN reg_provenance p ON p.provenance_code = o.provenance_code
LEFT JOIN ing_schedule_switch w ON w.job_id = o.job_id
ORDER BY 1, 8, 2

-- name: add_schedule
-- rows: job_id text, source text, name text, cfg text, then_cfg text, topic text, created_by text, created_at int
INSERT INTO ing_schedule (job_id, provenance_code, schedule_name, cfg, then_cfg, topic, created_by, created_at)
SELECT job_id, source, name, cfg, then_cfg, topic, created_by, created_at FROM rows WHERE true
ON CONFLICT (job_id) DO NOTHING

-- name: change_schedule
UPDATE ing_schedule SET cfg = :cfg, then_cfg = :then, topic = :topic, created_by = :by, created_at = :now
WHERE job_id = :job

-- name: touch_switch
UPDATE ing_schedule_switch SET switched_at = :now WHERE job_id = :job

-- name: remove_schedule
DELETE FROM ing_schedule WHERE job_id = :job

-- name: forget_switch
DELETE FROM ing_schedule_switch WHERE job_id = :job

-- name: forget_tick
DELETE FROM ing_schedule_tick WHERE job_id = :job

-- name: switch_schedule
-- rows: job_id text, enabled int, switched_by text, switched_at int
INSERT INTO ing_schedule_switch (job_id, enabled, switched_by, switched_at)
SELECT job_id, enabled, switched_by, switched_at FROM rows WHERE true
ON CONFLICT (job_id) DO UPDATE SET enabled = excluded.enabled, switched_by = excluded.switched_by,
  switched_at = excluded.switched_at

-- name: stage_of
SELECT version_no, share_percent, staged_by, staged_at FROM reg_pack_stage WHERE provenance_code = :source

-- name: stage_pack
-- rows: source text, version_no int, share int, staged_by text, staged_at int
INSERT INTO reg_pack_stage (provenance_code, version_no, share_percent, staged_by, staged_at)
SELECT source, version_no, share, staged_by, staged_at FROM rows WHERE true
ON CONFLICT (provenance_code) DO UPDATE SET version_no = excluded.version_no, share_percent = excluded.share_percent,
  staged_by = excluded.staged_by, staged_at = excluded.staged_at

-- name: unstage_pack
DELETE FROM reg_pack_stage WHERE provenance_code = :source AND version_no = :version_no

-- name: stage_comparison
-- Plans since a pack was staged, and how their tasks ended, of one version: `mark` stands in its snapshots.
SELECT count(DISTINCT p.plan_id) AS plans, count(t.task_id) AS tasks,
  sum(CASE WHEN t.status_code = 'SUCCEEDED' THEN 1 ELSE 0 END) AS succeeded,
  sum(CASE WHEN t.status_code = 'FAILED' THEN 1 ELSE 0 END) AS failed
FROM ing_plan p LEFT JOIN ing_task t ON t.plan_id = p.plan_id
WHERE p.provenance_code = :source AND p.created_at >= :since AND p.expr_proto_snapshot LIKE :mark

-- name: stage_quarantine
SELECT count(*) FROM ing_quarantine q WHERE q.provenance_code = :source AND EXISTS (
  SELECT 1 FROM ing_plan p WHERE p.plan_id = q.plan_id AND p.created_at >= :since AND p.expr_proto_snapshot LIKE :mark)
