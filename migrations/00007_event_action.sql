-- The events of one action of a process, by their numbers.
--
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
-- A history follows renames, and doctor and the console ask for the last halts. The audit of a
-- process may be long, and few of its events have the action.
CREATE INDEX cursor_event_process_name_action_id ON cursor_event (process_name, action, id);

-- +goose Down
DROP INDEX cursor_event_process_name_action_id;
