-- Partitions the batches of a PostgreSQL database by organisation. Run it once, while no batchscan process is running:
--   psql -X -v ON_ERROR_STOP=1 -f partitions.sql postgres://…
-- It needs as much free disk space as the table has. docs/REFERENCE.md says when it helps.
BEGIN;

LOCK TABLE organisation, batch;

ALTER TABLE batch RENAME TO batch_unpartitioned;
ALTER TABLE batch_unpartitioned RENAME CONSTRAINT batch_pkey TO batch_unpartitioned_pkey;
ALTER INDEX batch_by_id RENAME TO batch_unpartitioned_by_id;
ALTER INDEX batch_by_version RENAME TO batch_unpartitioned_by_version;

CREATE TABLE batch (LIKE batch_unpartitioned) PARTITION BY HASH (org_id);

DO $$
BEGIN
    FOR number IN 0..15 LOOP
        EXECUTE format('CREATE TABLE batch_%s PARTITION OF batch FOR VALUES WITH (MODULUS 16, REMAINDER %s)', number, number);
    END LOOP;
END $$;

INSERT INTO batch SELECT * FROM batch_unpartitioned ORDER BY org_id, created_at, batch_id;

ALTER TABLE batch ADD PRIMARY KEY (org_id, created_at, batch_id);
CREATE UNIQUE INDEX batch_by_id ON batch (org_id, batch_id);
CREATE INDEX batch_by_version ON batch (org_id, version, created_at, batch_id);

DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW batches AS ' || replace(pg_get_viewdef('batches'), 'batch_unpartitioned', 'batch');
END $$;

DROP TABLE batch_unpartitioned;

COMMIT;

ANALYZE batch;
