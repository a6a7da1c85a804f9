-- Long outputs, under a digest of handle and owner, from which nobody gets the handle back.
CREATE TABLE spills (
    key TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    format TEXT NOT NULL,
    omitted_bytes INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX spills_by_owner ON spills (owner, created_at);
CREATE INDEX spills_by_expiry ON spills (expires_at);
