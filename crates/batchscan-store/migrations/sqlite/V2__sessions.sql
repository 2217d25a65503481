-- Browsers that are signed in to the dashboard, and sign-in links that are not used yet.
CREATE TABLE session (
    id            TEXT    PRIMARY KEY,
    client_id     TEXT    NOT NULL REFERENCES credential (client_id) ON DELETE CASCADE,
    is_link       INTEGER NOT NULL,                    -- 1 until the link is used
    hash          BLOB    NOT NULL,                    -- HMAC-SHA-256 of the cookie's secret, replaced at every use
    previous_hash BLOB,                                -- of the secret before: the browser may not have received the new one
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    last_used_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX session_by_client ON session (client_id);
