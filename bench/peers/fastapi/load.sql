-- Tables of the FastAPI applications, filled from NDJSON as the API sends it:
--   psql -v ON_ERROR_STOP=1 -v organisation=… -v client_id=… -v secret_hash=… -f load.sql DATABASE < BATCHES.ndjson

CREATE TABLE clients (client_id text PRIMARY KEY, client_secret_hash text NOT NULL, organisation text NOT NULL);
INSERT INTO clients VALUES (:'client_id', :'secret_hash', :'organisation');

CREATE TABLE batches (
    organisation text NOT NULL,
    -- Ids are ordered by their bytes, whatever the locale.
    batch_id text COLLATE "C" NOT NULL,
    batch_name text NOT NULL,
    batch_creation_date timestamptz NOT NULL,
    crop_type text,
    number_of_images bigint NOT NULL,
    total_cells_per_tray bigint,
    avg_germinated_seedlings numeric(14, 2),
    avg_non_germinated_seedlings numeric(14, 2),
    avg_germination_rate numeric(14, 2),
    avg_usable_seedlings numeric(14, 2),
    avg_non_usable_cells numeric(14, 2),
    avg_usable_seedling_rate numeric(14, 2),
    avg_coefficient_of_variation numeric(14, 2),
    avg_median_seedling_size_mm2 numeric(14, 2),
    scanned_by_email text,
    analysis_link text,
    comment text,
    warnings boolean NOT NULL
);

-- Quote and delimiter do not occur in JSON, so each line is one value.
CREATE TEMPORARY TABLE lines (batch jsonb);
\copy lines FROM pstdin WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
INSERT INTO batches SELECT row.* FROM lines,
    jsonb_populate_record(NULL::batches, batch || jsonb_build_object('organisation', :'organisation')) AS row;

CREATE INDEX batches_by_position ON batches (organisation, batch_creation_date, batch_id);
VACUUM (ANALYZE) batches;
