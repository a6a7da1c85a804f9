-- When a run last changed: its age counts from then.
ALTER TABLE runs ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET changed_at = created_at;
CREATE INDEX runs_by_change ON runs (changed_at);
CREATE INDEX spills_by_age ON spills (created_at);
CREATE INDEX answers_by_age ON answers (created_at);

-- Outputs that somebody has read a part of, and when last. They are kept until the reader has had time for the rest.
CREATE TABLE reading (
    key TEXT PRIMARY KEY,
    read_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER spills_reading AFTER DELETE ON spills BEGIN
    DELETE FROM reading WHERE key = OLD.key;
END;

-- What was removed because of its age or to make room, so that whoever asks for it learns that.
CREATE TABLE removed (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX removed_by_age ON removed (removed_at);

-- The server that last removed old entries, by its epoch, and when it began. Of several servers one does it.
CREATE TABLE sweeps (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    server INTEGER NOT NULL,
    began_at INTEGER NOT NULL
) STRICT;
