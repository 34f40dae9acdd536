-- name: stages
SELECT event_type, major, stage, tenants, share, changed_by, changed_at FROM bus_stage ORDER BY event_type, major

-- name: stage_set
INSERT INTO bus_stage (event_type, major, stage, tenants, share, changed_by, changed_at)
VALUES (:event_type, :major, :stage, :tenants, :share, :changed_by, :changed_at)
ON CONFLICT (event_type, major) DO UPDATE SET stage = excluded.stage, tenants = excluded.tenants,
  share = excluded.share, changed_by = excluded.changed_by, changed_at = excluded.changed_at
