-- Tasks of MCP clients. Without an outcome one is at work, or was when the server that began it ended.
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    created_at TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    claimed_by INTEGER NOT NULL,
    ended_at TEXT,
    outcome TEXT
) STRICT;
CREATE INDEX tasks_by_expiry ON tasks (expires_at);
