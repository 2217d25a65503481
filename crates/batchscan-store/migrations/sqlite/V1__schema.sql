-- Organisations, their credentials and their batches. Instants are microseconds since 1970 in UTC.

CREATE TABLE organisation (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused: cursors and tokens of a removed organisation stay invalid
    name          TEXT    NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL DEFAULT 0,          -- incremented by every change of its batches, in the same transaction
    version_mark  INTEGER NOT NULL DEFAULT 0,          -- random for each version: a restored backup cannot repeat one
    moved_version INTEGER NOT NULL DEFAULT 0,          -- the last version in which a batch moved in the order
    pruned_version INTEGER NOT NULL DEFAULT 0,         -- the last version whose removals were deleted from batch_tombstone
    imported_at   INTEGER,                             -- when an import last changed its batches
    timezone      TEXT,                                -- of times without one in its files
    mapping       TEXT                                 -- how its files are read: a TOML document
) STRICT;

CREATE TABLE credential (
    client_id    TEXT    PRIMARY KEY,
    org_id       INTEGER REFERENCES organisation (id) ON DELETE CASCADE, -- null for an operator of all
    role         TEXT    CHECK (role IN ('admin', 'ingest')),  -- null for a client
    label        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER,
    last_rejected_at INTEGER                           -- when it was last tried after its end
) STRICT, WITHOUT ROWID;

CREATE INDEX credential_by_org ON credential (org_id);

CREATE TABLE secret (
    id         INTEGER PRIMARY KEY,
    client_id  TEXT    NOT NULL REFERENCES credential (client_id) ON DELETE CASCADE,
    hash       BLOB    NOT NULL,                       -- HMAC-SHA-256 of the secret under the secret key
    created_at INTEGER NOT NULL,
    retires_at INTEGER
) STRICT;

CREATE INDEX secret_by_client ON secret (client_id);

CREATE TABLE service_key (
    kid        TEXT    PRIMARY KEY,
    purpose    TEXT    NOT NULL CHECK (purpose IN ('token', 'cursor', 'secret')),
    bytes      BLOB    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The key is the batch order; json is the exact text of the response. Clustered by the key, so that a page is a scan of
-- adjacent rows.
CREATE TABLE batch (
    org_id     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    batch_id   TEXT    NOT NULL,
    json       TEXT    NOT NULL,
    version    INTEGER NOT NULL,                       -- the organisation's version that wrote it
    PRIMARY KEY (org_id, created_at, batch_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX batch_by_id ON batch (org_id, batch_id);
CREATE INDEX batch_by_version ON batch (org_id, version, created_at, batch_id);

-- Batches whose creation date was corrected or that were removed, and in which version: paging that began before must not
-- return them twice, and clients that keep a copy must remove them.
CREATE TABLE batch_tombstone (
    org_id   INTEGER NOT NULL,
    batch_id TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    PRIMARY KEY (org_id, batch_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX batch_tombstone_by_version ON batch_tombstone (org_id, version, batch_id);

-- Every version of an organisation's batches: a client's position in the changes is valid if its version is here.
CREATE TABLE data_version (
    org_id     INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    mark       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, version)
) STRICT, WITHOUT ROWID;

-- Runs of batches, compressed when they are imported. A gzip page is assembled from them. A block may be missing, but never
-- wrong: no other batches than its own lie after (after_created_at, after_id) and up to (last_created_at, last_id).
CREATE TABLE block (
    id               INTEGER PRIMARY KEY,
    org_id           INTEGER NOT NULL,
    after_created_at INTEGER NOT NULL,
    after_id         TEXT    NOT NULL,
    last_created_at  INTEGER NOT NULL,
    last_id          TEXT    NOT NULL,
    batches          INTEGER NOT NULL,
    text_bytes       INTEGER NOT NULL,                 -- of its JSON texts, separated by commas
    text_crc         INTEGER NOT NULL,                 -- CRC-32 of that text
    deflated         BLOB    NOT NULL                  -- non-final deflate blocks
) STRICT;

CREATE INDEX block_by_last ON block (org_id, last_created_at, last_id, after_created_at, after_id);

-- Browsers that are signed in to the dashboard, and sign-in links that are not used yet.
CREATE TABLE session (
    id            TEXT    PRIMARY KEY,
    client_id     TEXT    NOT NULL REFERENCES credential (client_id) ON DELETE CASCADE,
    is_link       INTEGER NOT NULL,                    -- 1 until the link is used
    hash          BLOB    NOT NULL,                    -- HMAC-SHA-256 of the cookie's secret, replaced once a day
    previous_hash BLOB,                                -- of the secret before: the browser may not have received the new one
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    last_used_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX session_by_client ON session (client_id);

-- Imports, one row for each. Ids count from 1 in each organisation.
CREATE TABLE import (
    org_id    INTEGER NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    id        INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    source    TEXT NOT NULL,
    file      TEXT,
    key       TEXT,                                    -- another import with this key has no effect
    hash      BLOB,                                    -- SHA-256 of the file
    added     INTEGER NOT NULL,
    corrected INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    warnings  INTEGER NOT NULL,
    version   INTEGER NOT NULL,                        -- of the organisation's batches afterwards
    is_rejected INTEGER NOT NULL,                      -- 1 for a file with errors: nothing was imported
    is_acknowledged INTEGER NOT NULL DEFAULT 0,        -- 1 if an operator has seen its warnings or errors
    messages  TEXT,                                    -- the first warnings or errors, a line each
    PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX import_by_key ON import (org_id, key) WHERE key IS NOT NULL;

-- Watched folders, as `batchscan watch` reports them.
CREATE TABLE watcher (
    org_id     INTEGER NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    host       TEXT NOT NULL,
    folder     TEXT NOT NULL,
    state      TEXT NOT NULL,                          -- running, waiting or stopped
    detail     TEXT NOT NULL,                          -- numbers of files, and why they wait
    seen_at    INTEGER NOT NULL,
    PRIMARY KEY (org_id, host, folder)
) STRICT, WITHOUT ROWID;

-- What users have marked as seen in the dashboard.
CREATE TABLE seen (
    org_id  INTEGER NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    is_seen INTEGER NOT NULL,                          -- 0 for a note alone
    at      INTEGER NOT NULL,                          -- of the last change
    by      TEXT NOT NULL,                             -- the label of the credential
    note    TEXT NOT NULL,                             -- empty if there is none
    PRIMARY KEY (org_id, subject)
) STRICT, WITHOUT ROWID;

-- One row while a copy into this database is unfinished. An incomplete database is not served.
CREATE TABLE unfinished_copy (
    source_key TEXT NOT NULL                           -- the id of the source's key for secrets, which is never rotated
) STRICT;

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

-- For SQL users: the eighteen fields, typed.
CREATE VIEW batches AS
SELECT
    organisation.name                                             AS organisation,
    batch.batch_id                                                AS batch_id,
    json ->> 'batch_name'                                         AS batch_name,
    json ->> 'batch_creation_date'                                AS batch_creation_date,
    json ->> 'crop_type'                                          AS crop_type,
    json ->> 'number_of_images'                                   AS number_of_images,
    json ->> 'total_cells_per_tray'                               AS total_cells_per_tray,
    CAST(json ->> 'avg_germinated_seedlings' AS REAL)             AS avg_germinated_seedlings,
    CAST(json ->> 'avg_non_germinated_seedlings' AS REAL)         AS avg_non_germinated_seedlings,
    CAST(json ->> 'avg_germination_rate' AS REAL)                 AS avg_germination_rate,
    CAST(json ->> 'avg_usable_seedlings' AS REAL)                 AS avg_usable_seedlings,
    CAST(json ->> 'avg_non_usable_cells' AS REAL)                 AS avg_non_usable_cells,
    CAST(json ->> 'avg_usable_seedling_rate' AS REAL)             AS avg_usable_seedling_rate,
    CAST(json ->> 'avg_coefficient_of_variation' AS REAL)         AS avg_coefficient_of_variation,
    CAST(json ->> 'avg_median_seedling_size_mm2' AS REAL)         AS avg_median_seedling_size_mm2,
    json ->> 'scanned_by_email'                                   AS scanned_by_email,
    json ->> 'analysis_link'                                      AS analysis_link,
    json ->> 'comment'                                            AS comment,
    json ->> 'warnings'                                           AS warnings
FROM batch
JOIN organisation ON organisation.id = batch.org_id;
