-- The payloads that operators gave to records that could not be delivered as they are. The rows of the source
-- stay as they are.
--
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
CREATE TABLE cursor_amended (
    process_name text COLLATE "C" NOT NULL,
    position     text COLLATE "C" NOT NULL,
    dedup_key    text COLLATE "C" NOT NULL,  -- of the record: ids, and so positions, may come again
    table_name   text NOT NULL,              -- with its schema
    record_id    text NOT NULL,
    payload      bytea NOT NULL,             -- delivered instead of that of the row
    original     text NOT NULL,              -- SHA-256 of the row's payload, in hexadecimal
    actor        text NOT NULL,
    db_user      text NOT NULL DEFAULT session_user,
    reason       text NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (process_name, position, dedup_key)
);

COMMENT ON TABLE cursor_amended IS 'ordered-dispatcher: payloads that operators gave to records; workers deliver them instead of those of the rows';

-- +goose Down
DROP TABLE cursor_amended;
