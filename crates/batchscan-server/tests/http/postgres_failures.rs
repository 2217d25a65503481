//! Outages of a PostgreSQL server: 503 for what may pass, 500 for what must not be.
