-- Closures that failed are few among very many: they are listed without walking past those that succeeded.
CREATE INDEX att_closure_failed ON att_closure (number) WHERE state = 'closed_failure';
