-- Tables of the plain Rust service. Dates are microseconds since 1970, decimals are hundredths.

CREATE TABLE clients (client_id TEXT PRIMARY KEY, client_secret_hash TEXT NOT NULL, organisation TEXT NOT NULL);

CREATE TABLE batches (
    organisation TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    batch_name TEXT NOT NULL,
    batch_creation_date INTEGER NOT NULL,
    crop_type TEXT,
    number_of_images INTEGER NOT NULL,
    total_cells_per_tray INTEGER,
    avg_germinated_seedlings INTEGER,
    avg_non_germinated_seedlings INTEGER,
    avg_germination_rate INTEGER,
    avg_usable_seedlings INTEGER,
    avg_non_usable_cells INTEGER,
    avg_usable_seedling_rate INTEGER,
    avg_coefficient_of_variation INTEGER,
    avg_median_seedling_size_mm2 INTEGER,
    scanned_by_email TEXT,
    analysis_link TEXT,
    comment TEXT,
    warnings INTEGER NOT NULL
);

CREATE INDEX batches_by_position ON batches (organisation, batch_creation_date, batch_id);
