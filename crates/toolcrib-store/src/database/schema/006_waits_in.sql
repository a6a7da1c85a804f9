-- The server in which a call waits, by its epoch; 0 where that is not known.
ALTER TABLE suspensions ADD COLUMN waits_in INTEGER NOT NULL DEFAULT 0;
