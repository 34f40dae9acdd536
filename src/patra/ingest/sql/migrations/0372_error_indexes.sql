-- Errors of an endpoint, or of a rare class, are listed without those of others: by partition, as runs are, and by class.
CREATE INDEX idx_batch_error_partition
  ON ing_task_run_batch ((provenance_code || '/' || endpoint_name || '/' || operation_code), created_at, batch_id)
  WHERE error_level IS NOT NULL;
CREATE INDEX idx_run_failure_partition
  ON ing_task_run ((provenance_code || '/' || endpoint_name || '/' || operation_code), finished_at, run_id)
  WHERE status_code = 'FAILED';
CREATE INDEX idx_batch_error_level ON ing_task_run_batch (error_level, created_at, batch_id)
  WHERE error_level IS NOT NULL;
