-- One row while a copy into this database is under way, or was interrupted: half a database is not to be served.

CREATE TABLE unfinished_copy (
    source_key TEXT NOT NULL                           -- the source's key for secrets, which is never rotated: whose copy it is
);
