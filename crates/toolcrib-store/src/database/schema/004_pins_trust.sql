-- What imported definitions were when they were first seen, or accepted last.
CREATE TABLE pins (
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (upstream, tool)
) STRICT, WITHOUT ROWID;

-- Declarations that the operator trusts, as they were then.
CREATE TABLE trust (
    unit TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    shown TEXT,
    PRIMARY KEY (unit, kind, name)
) STRICT, WITHOUT ROWID;
