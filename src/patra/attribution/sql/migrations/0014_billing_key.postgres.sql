-- The last line of defence: whatever the writers decide, no billing key is billed twice. The closure's key is unique already.
CREATE UNIQUE INDEX att_billable_key ON att_billable (closure, billable_type);
