-- What happened to runs, an entry for each step, numbered from 1 without gaps. A run is what its entries add up to.
CREATE TABLE journal (
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

-- The calls of runs that wait, as which suspended call, and until when.
CREATE TABLE waiting_calls (
    run TEXT NOT NULL,
    call INTEGER NOT NULL,
    suspension TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (run, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX waiting_calls_by_suspension ON waiting_calls (suspension);

-- The record of a run becomes the first entry of its journal.
INSERT INTO journal (run, seq, entry) SELECT id, 1, '{"imported":' || record || '}' FROM runs;
INSERT INTO waiting_calls (run, call, suspension, until)
    SELECT runs.id, slots.key, json_extract(slots.value, '$.waiting.id'), runs.expires_at
    FROM runs, json_each(iif(json_valid(runs.record), runs.record, '{}'), '$.slots') AS slots
    WHERE json_type(slots.value, '$.waiting.id') = 'text';

-- `version` is the number of the last entry. `claimed_by` is the server that alone appends, by its epoch, 0 for
-- none, and `term` the number of its claim. `is_unread`: calls were answered that the run itself does not know of.
UPDATE runs SET version = 1;
ALTER TABLE runs DROP COLUMN record;
ALTER TABLE runs RENAME COLUMN version TO last;
ALTER TABLE runs ADD COLUMN claimed_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN term INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN is_unread INTEGER NOT NULL DEFAULT 0;
DROP INDEX runs_by_expiry;
DROP INDEX runs_by_expiry_of_all;
CREATE INDEX runs_by_expiry ON runs (owner, is_unread, expires_at);
CREATE INDEX runs_by_expiry_of_all ON runs (is_unread, expires_at);

CREATE TRIGGER runs_erased AFTER DELETE ON runs BEGIN
    DELETE FROM journal WHERE run = old.id;
    DELETE FROM waiting_calls WHERE run = old.id;
END;
