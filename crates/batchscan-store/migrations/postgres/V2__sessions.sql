-- Browsers that are signed in to the dashboard, and sign-in links that are not used yet.
CREATE TABLE session (
    id            TEXT   COLLATE "C" PRIMARY KEY,
    client_id     TEXT   COLLATE "C" NOT NULL REFERENCES credential (client_id) ON DELETE CASCADE,
    is_link       BIGINT NOT NULL,                     -- 1 until the link is used
    hash          BYTEA  NOT NULL,                     -- HMAC-SHA-256 of the cookie's secret, replaced at every use
    previous_hash BYTEA,                               -- of the secret before: the browser may not have received the new one
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    last_used_at  BIGINT
);

CREATE INDEX session_by_client ON session (client_id);
