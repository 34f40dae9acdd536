-- Whether the letter's group was consumed by a program elsewhere (B9): known also after the group was forgotten.
ALTER TABLE bus_dead_letter ADD COLUMN remote BIGINT NOT NULL DEFAULT 0;
UPDATE bus_dead_letter SET remote = 1 WHERE group_name IN (SELECT name FROM bus_group WHERE remote = 1);
