-- Which records the pages of an unfinished list brought: a run that goes on with it counts none of them twice.
CREATE TABLE ing_list_keys (
  task_id TEXT NOT NULL,
  page BIGINT NOT NULL,
  record_keys {blob} NOT NULL,
  nameless_keys {blob} NOT NULL,
  PRIMARY KEY (task_id, page)
);
