-- Who changed what. Entries are only added. Ids follow the order of commits.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    source  TEXT NOT NULL,
    action  TEXT NOT NULL,
    org     TEXT,
    subject TEXT,
    detail  TEXT
) STRICT;

CREATE TRIGGER audit_update BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'entries of the audit log cannot be changed'); END;

-- A copy replaces the entries that its target made before.
CREATE TRIGGER audit_delete BEFORE DELETE ON audit WHEN NOT EXISTS (SELECT 1 FROM unfinished_copy)
BEGIN SELECT raise(ABORT, 'entries of the audit log cannot be removed'); END;
