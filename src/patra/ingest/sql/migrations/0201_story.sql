-- People search a cursor by its namespace alone (the story).
CREATE INDEX idx_cursor_namespace ON ing_cursor (namespace_key);
