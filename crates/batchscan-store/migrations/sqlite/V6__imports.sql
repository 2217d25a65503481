-- Imports, one row for each. Ids count from 1 in each organisation.
CREATE TABLE import (
    org_id    INTEGER NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    id        INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    source    TEXT NOT NULL,
    file      TEXT,
    key       TEXT,                                    -- a repeated import with this key has no effect
    hash      BLOB,                                    -- SHA-256 of the file
    added     INTEGER NOT NULL,
    corrected INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    repeated  INTEGER NOT NULL,
    warnings  INTEGER NOT NULL,
    version   INTEGER NOT NULL,                        -- of the organisation's batches afterwards
    PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX import_by_key ON import (org_id, key) WHERE key IS NOT NULL;

-- Tokens of the operator API.
CREATE TABLE operator_token (
    id           TEXT PRIMARY KEY,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'ingest')),
    org_id       INTEGER REFERENCES organisation (id) ON DELETE CASCADE, -- the only one that it may deliver to
    label        TEXT NOT NULL,
    hash         BLOB NOT NULL,                        -- HMAC-SHA-256 of the secret under the secret key
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;
