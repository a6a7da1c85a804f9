-- Answers to requests with an Idempotency-Key, under a digest of client and key. Without a status it is being
-- worked on, or was when the server that had claimed it ended.
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    claimed_by INTEGER NOT NULL,
    request TEXT NOT NULL,
    status INTEGER,
    headers TEXT,
    body TEXT
) STRICT;
CREATE INDEX answers_by_owner ON answers (owner, expires_at);
CREATE INDEX answers_by_expiry ON answers (expires_at);
