-- Imports, one row for each. Ids count from 1 in each organisation.
CREATE TABLE import (
    org_id    BIGINT NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    id        BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    actor     TEXT NOT NULL,
    source    TEXT NOT NULL,
    file      TEXT,
    key       TEXT COLLATE "C",                       -- a repeated import with this key has no effect
    hash      BYTEA,                                  -- SHA-256 of the file
    added     BIGINT NOT NULL,
    corrected BIGINT NOT NULL,
    unchanged BIGINT NOT NULL,
    repeated  BIGINT NOT NULL,
    warnings  BIGINT NOT NULL,
    version   BIGINT NOT NULL,                       -- of the organisation's batches afterwards
    PRIMARY KEY (org_id, id)
);

CREATE UNIQUE INDEX import_by_key ON import (org_id, key) WHERE key IS NOT NULL;

-- Tokens of the operator API.
CREATE TABLE operator_token (
    id           TEXT COLLATE "C" PRIMARY KEY,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'ingest')),
    org_id       BIGINT REFERENCES organisation (id) ON DELETE CASCADE, -- the only one that it may deliver to
    label        TEXT NOT NULL,
    hash         BYTEA NOT NULL,                      -- HMAC-SHA-256 of the secret under the secret key
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    revoked_at   BIGINT,
    last_used_at BIGINT
);
