-- Who did what with calls that waited: for those who come too late.
CREATE TABLE resolved (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    resolved_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX resolved_by_owner ON resolved (owner, resolved_at, id);
CREATE INDEX resolved_by_age ON resolved (resolved_at, id);
CREATE INDEX resolved_by_expiry ON resolved (expires_at);
