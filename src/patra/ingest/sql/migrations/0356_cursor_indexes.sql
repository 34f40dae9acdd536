-- Where a cursor begins and how far it may go: every condition stands in the index, so that on PostgreSQL no statistics make
-- a sort of all windows look cheaper than a walk in their order.
CREATE INDEX idx_task_cursor_from ON ing_task (namespace_key, provenance_code, endpoint_name, operation_code, window_from)
  WHERE window_to IS NOT NULL;
CREATE INDEX idx_task_cursor_to ON ing_task (namespace_key, provenance_code, endpoint_name, operation_code, window_to)
  WHERE window_to IS NOT NULL;
