-- What was said to runs on which another server works, until an entry of the journal has it. Numbers are never used again.
CREATE TABLE run_messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    message TEXT NOT NULL
) STRICT;
CREATE INDEX run_messages_by_run ON run_messages (run, number);

CREATE TRIGGER messages_erased AFTER DELETE ON runs BEGIN
    DELETE FROM run_messages WHERE run = old.id;
END;
