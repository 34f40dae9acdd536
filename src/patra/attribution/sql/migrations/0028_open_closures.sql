-- Open closures are few among very many: they are listed without looking at those whose click is still awaited.
CREATE INDEX att_closure_open ON att_closure (number) WHERE state = 'open';
