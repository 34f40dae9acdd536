-- Keys that people search by (the story) and that had no index. The idempotency key stands in the envelope before the
-- payload, and no quotation mark stands in a JSON text unescaped: the first place of its name is the envelope's.
CREATE INDEX bus_event_by_idempotency_key ON bus_event (
  substr(body, instr(body, '"idempotency_key":"') + 19, instr(substr(body, instr(body, '"idempotency_key":"') + 19), '"') - 1)
) WHERE body IS NOT NULL;
CREATE INDEX bus_refusal_by_idempotency_key ON bus_refusal (idempotency_key);
