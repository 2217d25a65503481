-- When an import last changed the organisation's batches.
ALTER TABLE organisation ADD COLUMN imported_at BIGINT;
