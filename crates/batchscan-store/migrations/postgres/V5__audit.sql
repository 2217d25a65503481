-- Who changed what. Entries are only added. Ids follow the order of commits.
CREATE TABLE audit (
    id      BIGINT PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT NOT NULL,
    source  TEXT NOT NULL,
    action  TEXT NOT NULL,
    org     TEXT,
    subject TEXT,
    detail  TEXT
);

-- A copy replaces the entries that its target made before.
CREATE OR REPLACE FUNCTION audit_reject_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' OR NOT EXISTS (SELECT 1 FROM unfinished_copy) THEN
        RAISE EXCEPTION 'entries of the audit log cannot be changed or removed';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_reject_change();
