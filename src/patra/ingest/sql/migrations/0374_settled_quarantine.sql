-- Retention finds the oldest records that are no longer in quarantine, however many are open.
CREATE INDEX idx_quarantine_settled ON ing_quarantine (last_seen_at, provenance_code, endpoint_name, item_key)
  WHERE status_code <> 'OPEN';
