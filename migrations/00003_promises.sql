-- What the promises needed that hostile use broke.
-- Names are unqualified: run with search_path set to the schema wanted.

-- +goose Up
-- A process halts as refused when the receiver refuses its credentials or address,
-- and as unreadable when the source cannot read a record.
ALTER TABLE cursor DROP CONSTRAINT cursor_failed_class_check;
ALTER TABLE cursor ADD CONSTRAINT cursor_failed_class_check
    CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored', 'refused', 'unreadable'));

-- +goose Down
UPDATE cursor SET failed_class = 'permanent' WHERE failed_class IN ('refused', 'unreadable');
ALTER TABLE cursor DROP CONSTRAINT cursor_failed_class_check;
ALTER TABLE cursor ADD CONSTRAINT cursor_failed_class_check
    CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored'));
