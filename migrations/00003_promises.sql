-- What the promises needed that hostile use broke.
-- Names are unqualified: run with search_path set to the schema wanted.

-- +goose Up
-- A process halts as refused when the receiver refuses its credentials or address,
-- and as unreadable when the source cannot read a record.
ALTER TABLE cursor DROP CONSTRAINT cursor_failed_class_check;
ALTER TABLE cursor ADD CONSTRAINT cursor_failed_class_check
    CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored', 'refused', 'unreadable'));

-- Names in the trigger mean PostgreSQL's own, whatever search_path the session has.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION cursor_set_updated_at() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.updated_at := pg_catalog.clock_timestamp();
    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- +goose Down
ALTER FUNCTION cursor_set_updated_at() RESET search_path;
UPDATE cursor SET failed_class = 'permanent' WHERE failed_class IN ('refused', 'unreadable');
ALTER TABLE cursor DROP CONSTRAINT cursor_failed_class_check;
ALTER TABLE cursor ADD CONSTRAINT cursor_failed_class_check
    CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored'));
