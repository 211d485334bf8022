-- Who was told of a halt, of a lag and of dead letters, so that one message goes out over all
-- workers, and a worker that takes over sends none again.
--
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
CREATE TABLE cursor_alarm (
    process_name  text COLLATE "C" NOT NULL,
    event         text COLLATE "C" NOT NULL,               -- halt, lag or dead_letters
    target        text COLLATE "C" NOT NULL,               -- its name in the configuration
    told          text NOT NULL DEFAULT '' CHECK (told IN ('', 'raised', 'recovered')),
    mark          text NOT NULL DEFAULT '',                -- tells one halt from the next
    since         timestamptz,                             -- when the alarm began
    messages      bigint NOT NULL DEFAULT 0,               -- in all
    flaps         integer NOT NULL DEFAULT 0,              -- how often it was raised again soon after a recovery
    told_at       timestamptz,                             -- the last message
    told_by       text NOT NULL DEFAULT '',                -- the worker that sent it
    gone_since    timestamptz,                             -- the cause is gone, and the recovery is not told yet
    claimed_by    text NOT NULL DEFAULT '',                -- the worker that sends a message now
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (process_name, event, target)
) WITH (fillfactor = 50);

COMMENT ON TABLE cursor_alarm IS 'ordered-dispatcher: who was told of an alarm of a process';

-- +goose Down
DROP TABLE cursor_alarm;
