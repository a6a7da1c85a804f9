-- Files that programs of a server could have created or changed, until the operator has reviewed them.
CREATE TABLE exposed (
    path BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
