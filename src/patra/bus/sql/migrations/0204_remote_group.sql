-- A group whose consumer is somebody else's, over HTTP: what it does not handle freezes nobody (B9).
ALTER TABLE bus_group ADD COLUMN remote BIGINT NOT NULL DEFAULT 0;
