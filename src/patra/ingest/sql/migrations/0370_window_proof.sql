-- What shows that nothing of a window is missing: a total, two readings that agree, or nothing.
ALTER TABLE ing_window_ledger ADD COLUMN proof_code TEXT NOT NULL DEFAULT 'NONE';
UPDATE ing_window_ledger SET proof_code = CASE
    WHEN leg_code = 'DETAIL' OR operation_code = 'UPDATE' THEN 'IDS'
    WHEN total_code = 'EXACT' AND promised_last IS NOT NULL THEN 'TOTAL'
    WHEN total_code = 'ESTIMATE' AND promised_last IS NOT NULL THEN 'ESTIMATE'
    ELSE 'NONE' END;
CREATE INDEX idx_ledger_unproven ON ing_window_ledger (provenance_code, endpoint_name, operation_code)
  WHERE leg_code = 'LIST' AND status_code = 'COMPLETE' AND proof_code = 'NONE';
