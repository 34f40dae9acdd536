-- name: rate_state_make
-- rows: rate_key text, state text, updated_at int
INSERT INTO ing_rate_state (rate_key, state, updated_at)
SELECT rate_key, state, updated_at FROM rows WHERE true ON CONFLICT (rate_key) DO NOTHING

-- name: rate_state
SELECT state FROM ing_rate_state WHERE rate_key = :key {for_update}

-- name: rate_state_seen
SELECT state FROM ing_rate_state WHERE rate_key = :key

-- name: rate_state_set
UPDATE ing_rate_state SET state = :state, updated_at = :now WHERE rate_key = :key
