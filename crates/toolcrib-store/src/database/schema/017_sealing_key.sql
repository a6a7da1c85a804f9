-- The key with which servers seal what clients keep for them. There is one.
CREATE TABLE sealing_key (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    key BLOB NOT NULL CHECK (length(key) = 32)
) STRICT;
