-- Every version of an organisation's batches: a client's position in the changes is valid if its version is here.
CREATE TABLE data_version (
    org_id     BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    mark       BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, version)
);

INSERT INTO data_version SELECT id, version, version_mark, coalesce(imported_at, created_at) FROM organisation;

-- The last version whose removals were deleted from moved_batch. That table also has the batches that were removed: those
-- that are not in batch.
ALTER TABLE organisation ADD COLUMN pruned_version BIGINT NOT NULL DEFAULT 0;

CREATE INDEX batch_by_version ON batch (org_id, version, created_at, batch_id);
CREATE INDEX moved_batch_by_version ON moved_batch (org_id, version, batch_id);
