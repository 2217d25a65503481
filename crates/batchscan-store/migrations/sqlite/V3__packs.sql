-- Runs of neighbouring batches, compressed once when they are written: a compressed page is put together from them.
-- Nothing hangs on a pack being there; one that is there tells the truth.

CREATE TABLE pack (
    id               INTEGER PRIMARY KEY,
    org_id           INTEGER NOT NULL,
    first_created_at INTEGER NOT NULL,                 -- the place of its first batch
    first_id         TEXT    NOT NULL,
    last_created_at  INTEGER NOT NULL,                 -- and of its last
    last_id          TEXT    NOT NULL,
    until_created_at INTEGER NOT NULL,                 -- between its first and this place, which it does not include,
    until_id         TEXT    NOT NULL,                 -- there are no other batches than its own
    batches          INTEGER NOT NULL,
    text_bytes       INTEGER NOT NULL,                 -- of its batches' texts, separated by commas
    text_sum         INTEGER NOT NULL,                 -- CRC-32
    deflated         BLOB    NOT NULL                  -- blocks of deflate, none of which is the last
) STRICT;

-- The version that the packs are of. Whoever changes batches and knows of no packs raises the other one alone: then they
-- are not used any more.
ALTER TABLE organisation ADD COLUMN packed_version INTEGER NOT NULL DEFAULT -1;

CREATE UNIQUE INDEX pack_by_place ON pack (org_id, first_created_at, first_id);
