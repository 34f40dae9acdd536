-- name: alert_notes
SELECT alert_key, kind_code, noted_by, noted_at, until_at, why, held_at FROM ing_alert_note

-- name: alert_note_set
-- rows: alert_key text, kind_code text, noted_by text, noted_at int, until_at int, why text
INSERT INTO ing_alert_note (alert_key, kind_code, noted_by, noted_at, until_at, why)
SELECT alert_key, kind_code, noted_by, noted_at, until_at, why FROM rows WHERE true
ON CONFLICT (alert_key, kind_code) DO UPDATE SET noted_by = excluded.noted_by, noted_at = excluded.noted_at,
  until_at = excluded.until_at, why = excluded.why

-- name: alert_silence_end
UPDATE ing_alert_note SET until_at = :now WHERE alert_key = :key AND kind_code = 'SILENCE' AND until_at > :now

-- name: alert_held
-- rows: alert_key text, held_at int
UPDATE ing_alert_note SET held_at = (SELECT held_at FROM rows WHERE rows.alert_key = ing_alert_note.alert_key)
WHERE kind_code = 'SILENCE' AND alert_key IN (SELECT alert_key FROM rows)

-- name: alert_note_purge
DELETE FROM ing_alert_note WHERE (kind_code = 'SILENCE' AND until_at < :before AND held_at IS NULL)
  OR (kind_code = 'ACK' AND noted_at < :before
    AND alert_key NOT IN (SELECT alert_key FROM ing_alert WHERE state_code <> 'OVER'))

-- name: alert_state_of
SELECT state_code, since FROM ing_alert WHERE alert_key = :key {for_update}
