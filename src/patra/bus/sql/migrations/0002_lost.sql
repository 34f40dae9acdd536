-- How many processes were lost while they tried the event alone; an event that was lost once is tried alone ever after.
ALTER TABLE bus_delivery ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;
