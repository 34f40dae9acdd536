-- Open closures are few among very many: they are listed without looking at those whose click is still awaited. Only this
-- index has the order of the expression, so that no statistics lead a page along the primary key, past all that are closed.
CREATE INDEX att_closure_open ON att_closure ((substring(key FROM 1))) WHERE state = 'open';
