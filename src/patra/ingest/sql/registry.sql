-- name: registry_source
SELECT provenance_code, provenance_name, description, enabled, pack_version, pack_hash, version_no, cfg, created_at, updated_at
FROM reg_provenance WHERE provenance_code = :source

-- name: registry_sources
SELECT p.provenance_code, p.provenance_name, p.enabled, p.pack_version, p.pack_hash, p.version_no, p.updated_at,
  (SELECT count(*) FROM reg_prov_endpoint_def e WHERE e.provenance_code = p.provenance_code) AS endpoints,
  (SELECT count(*) FROM reg_prov_schedule s WHERE s.provenance_code = p.provenance_code AND s.enabled = 1) AS schedules
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
SELECT type_code, item_code FROM sys_dict_item WHERE enabled = 1

-- name: schedules
SELECT s.provenance_code, s.schedule_name, s.endpoint_name, s.operation_code, s.cron, s.cfg
FROM reg_prov_schedule s JOIN reg_provenance p ON p.provenance_code = s.provenance_code
WHERE s.enabled = 1 AND p.enabled = 1
ORDER BY s.provenance_code, s.position
