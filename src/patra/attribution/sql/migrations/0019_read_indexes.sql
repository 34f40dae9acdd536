-- Refused batches are few among very many: they are listed without walking the log.
CREATE INDEX att_log_refused ON att_log (number) WHERE kind = 'refused';
