-- Runs of an endpoint or an operation are listed without those of others: by partition, as tasks are.
DROP INDEX idx_run_source;
CREATE INDEX idx_run_partition
  ON ing_task_run ((provenance_code || '/' || endpoint_name || '/' || operation_code), status_code, started_at, run_id);
-- Batches that failed or were skipped are few among very many.
CREATE INDEX idx_batch_status ON ing_task_run_batch (status_code, created_at, batch_id) WHERE status_code <> 'SUCCEEDED';
