-- Servers that have this database open, and those that died with it open. Epochs rise and are never used again.
CREATE TABLE servers (
    epoch INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    pid INTEGER NOT NULL,
    started_at INTEGER NOT NULL
) STRICT;

-- How much of each kind an owner has. The owner x'' stands for all owners together.
CREATE TABLE usage (
    kind TEXT NOT NULL,
    owner BLOB NOT NULL,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (kind, owner)
) STRICT, WITHOUT ROWID;

-- Calls that wait.
CREATE TABLE suspensions (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX suspensions_by_owner ON suspensions (owner, created_at, id);
CREATE INDEX suspensions_by_age ON suspensions (created_at, id);
CREATE INDEX suspensions_by_expiry ON suspensions (owner, expires_at);
CREATE INDEX suspensions_by_expiry_of_all ON suspensions (expires_at);

-- Calls that were taken to be resolved, and by which server, until it is known what became of them.
CREATE TABLE taken (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    taken_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    claimed_by INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX taken_by_expiry ON taken (expires_at);

-- What became of calls that somebody other than their caller has decided on.
CREATE TABLE settled (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    decided_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    claimed_by INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX settled_by_owner ON settled (owner, decided_at, id);
CREATE INDEX settled_by_age ON settled (decided_at, id);
CREATE INDEX settled_by_expiry ON settled (expires_at);

-- Runs. One that is over has expired when it was made; one that waits does when its calls have.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    version INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_owner ON runs (owner, created_at, id);
CREATE INDEX runs_by_expiry ON runs (owner, expires_at);
CREATE INDEX runs_by_expiry_of_all ON runs (expires_at);
