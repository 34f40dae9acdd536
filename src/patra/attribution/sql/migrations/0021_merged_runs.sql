-- Runs of the index by key are joined, bucket after bucket (`key_index_merge`).
INSERT INTO att_mark (name, value) VALUES ('merged_runs', 0), ('merge_bucket', 0);
