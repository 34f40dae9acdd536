-- Runs of an endpoint or an operation are listed without those of others: by partition, as tasks are.
DROP INDEX idx_run_source;
CREATE INDEX idx_run_partition
  ON ing_task_run ((provenance_code || '/' || endpoint_name || '/' || operation_code), status_code, started_at, run_id);
-- Batches that failed or were skipped are few among very many.
CREATE INDEX idx_batch_status ON ing_task_run_batch (status_code, created_at, batch_id) WHERE status_code <> 'SUCCEEDED';
-- Where a cursor begins and how far it may go: every condition stands in the index, so that on PostgreSQL no statistics make
-- a sort of all windows look cheaper than a walk in their order.
CREATE INDEX idx_task_cursor_from ON ing_task (namespace_key, provenance_code, endpoint_name, operation_code, window_from)
  WHERE window_to IS NOT NULL;
CREATE INDEX idx_task_cursor_to ON ing_task (namespace_key, provenance_code, endpoint_name, operation_code, window_to)
  WHERE window_to IS NOT NULL;
