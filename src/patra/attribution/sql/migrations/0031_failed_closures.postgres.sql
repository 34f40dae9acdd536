-- Closures that failed are few among very many: they are listed without walking past those that succeeded. The order is
-- that of an expression, as with open ones (0028), so that no statistics lead a page along the primary key.
CREATE INDEX att_closure_failed ON att_closure ((substring(key FROM 1))) WHERE state = 'closed_failure';
