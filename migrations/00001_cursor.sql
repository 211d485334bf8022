-- The cursor of each process, and the audit of what was done to it.
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
CREATE TABLE cursor (
    process_name      text COLLATE "C" PRIMARY KEY CHECK (process_name <> ''),
    position          text COLLATE "C" NOT NULL DEFAULT '',  -- '' stands before the first record
    sequence          bigint NOT NULL DEFAULT 0,             -- records delivered, without holes
    epoch             bigint NOT NULL DEFAULT 0,             -- grows at every change of worker
    holder            text NOT NULL DEFAULT '',              -- the worker of this epoch
    state             text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'halted')),
    failed_position   text COLLATE "C",                      -- the record the process is stuck on
    failed_record_id  text,
    failed_attempts   integer NOT NULL DEFAULT 0,
    first_failed_at   timestamptz,
    last_failed_at    timestamptz,
    next_attempt_at   timestamptz,
    failed_error      text,
    failed_class      text CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored')),
    system_identifier bigint,                                -- of the database cluster the position belongs to; NULL: adopt the next
    timeline          integer,                               -- of that cluster: grows when a standby is promoted
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

COMMENT ON TABLE cursor IS 'ordered-dispatcher: how far each named process has come';

-- +goose StatementBegin
CREATE FUNCTION cursor_set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER set_updated_at BEFORE UPDATE ON cursor FOR EACH ROW EXECUTE FUNCTION cursor_set_updated_at();

CREATE TABLE cursor_event (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    process_name  text COLLATE "C" NOT NULL,
    actor         text NOT NULL,
    action        text NOT NULL,
    reason        text NOT NULL DEFAULT '',
    from_position text COLLATE "C",
    to_position   text COLLATE "C",
    detail        jsonb NOT NULL DEFAULT '{}'
);

CREATE INDEX cursor_event_process_name_id ON cursor_event (process_name, id);

COMMENT ON TABLE cursor_event IS 'ordered-dispatcher: what was done to each cursor, by whom; rows are only added';

-- +goose Down
DROP TABLE cursor_event;
DROP TABLE cursor;
DROP FUNCTION cursor_set_updated_at();
