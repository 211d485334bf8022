-- The records that a process with the policy dead_letter put aside, with the reason. Rows stay
-- when they are replayed or discarded: they are the audit of the records that were not delivered
-- in their turn.
--
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
CREATE TABLE dead_letter (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                timestamptz NOT NULL DEFAULT clock_timestamp(),
    process_name      text COLLATE "C" NOT NULL,
    position          text COLLATE "C" NOT NULL,
    sequence          bigint NOT NULL,              -- that of its attempts; no other record has it
    table_name        text NOT NULL,
    record_id         text NOT NULL,
    key               text NOT NULL DEFAULT '',
    type              text NOT NULL DEFAULT '',
    record_created_at timestamptz,
    headers           json NOT NULL DEFAULT '{}',
    payload           bytea,                        -- the bytes as they were sent; NULL = none
    attempts          integer NOT NULL,
    first_failed_at   timestamptz NOT NULL,
    error             text NOT NULL,
    class             text NOT NULL,
    resolution        text CHECK (resolution IN ('replayed', 'discarded')),  -- NULL = open
    resolved_at       timestamptz,
    resolved_by       text,
    reason            text,
    CHECK ((resolution IS NULL) = (resolved_at IS NULL))
);

CREATE INDEX dead_letter_open ON dead_letter (process_name, id) WHERE resolution IS NULL;

COMMENT ON TABLE dead_letter IS 'ordered-dispatcher: records put aside by the policy dead_letter';

-- +goose Down
DROP TABLE dead_letter;
