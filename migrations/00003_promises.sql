-- Changes for the promises that hostile use broke.
--
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
-- The horizon: every transaction whose rows were delivered is below it. A transaction that begins
-- after a standby was promoted is not. If a standby was promoted and no worker has noted that
-- yet, rows may have come since. Then the horizon is the transaction that advanced the cursor
-- last. This statement comes first, since a statement below writes each row anew, and after that
-- the transaction is not known. An earlier upgrade that was undone has written the row, too: the
-- event that it left has the known value. If an operator decided last, as by a pause after the
-- promotion, the horizon is the transaction that made the cursor, or 3, which is below all.
LOCK TABLE cursor IN ACCESS EXCLUSIVE MODE;
ALTER TABLE cursor ADD COLUMN horizon xid8 DEFAULT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot());
ALTER TABLE cursor DISABLE TRIGGER set_updated_at;
UPDATE cursor
SET horizon = CASE
    WHEN EXISTS (
        SELECT FROM cursor_event e
        WHERE e.process_name = cursor.process_name AND e.xmin = cursor.xmin AND e.action IN ('pause', 'resume', 'retry', 'skip', 'seek', 'restored')
    ) THEN coalesce((
        SELECT (now.xid - mod(now.xid - e.xmin::text::bigint, 4294967296))::text::xid8
        FROM cursor_event e
        WHERE e.process_name = cursor.process_name AND e.action IN ('create', 'rename')
        ORDER BY e.id DESC
        LIMIT 1
    ), '3')
    ELSE least(
        (now.xid - mod(now.xid - xmin::text::bigint, 4294967296))::text::xid8,
        (SELECT (e.detail->>'horizon')::xid8 FROM cursor_event e WHERE e.process_name = cursor.process_name AND e.action = 'downgrade' ORDER BY e.id DESC LIMIT 1)
    ) END
FROM (SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint AS xid) now
WHERE timeline <> ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int;
ALTER TABLE cursor ENABLE TRIGGER set_updated_at;

-- A process halts as refused when the receiver refuses its credentials or address, and as
-- unreadable when the source cannot read a record. A record that fails as unreached has not been
-- sent, so its attempts do not make it a dead letter.
ALTER TABLE cursor DROP CONSTRAINT cursor_failed_class_check;
ALTER TABLE cursor ADD CONSTRAINT cursor_failed_class_check
    CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored', 'old_primary', 'clock', 'reset', 'refused', 'unreadable', 'unreached'));

-- The database to which the position belongs, beside its cluster: a dump may be restored under
-- another name into the same cluster. NULL: not known yet, so it belongs to any.
ALTER TABLE cursor ADD COLUMN database_oid oid;

-- Identifies the cursor for receivers that keep notes: two databases may have a process of one
-- name. It stays the same over epochs, a rename, and a row that is deleted and put back.
ALTER TABLE cursor ADD COLUMN origin uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid();

-- The positions after which another history begins: ids and numbers may come again after a
-- promotion that lost commits, or a restore. An array of {"after": position, "mark": the mark in
-- dedup keys}, by position.
ALTER TABLE cursor ADD COLUMN histories jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(histories) = 'array');

-- This function runs at every checkpoint. The one name in it has its schema, which costs nothing.
-- A search_path of the function's own would cost more than the rest of it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION cursor_set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := pg_catalog.clock_timestamp();
    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- The last numbers of cursors that were deleted or renamed, so that a later cursor of that name
-- does not use an epoch or a sequence twice. Retention of the audit does not remove them.
CREATE TABLE cursor_past (
    process_name text COLLATE "C" PRIMARY KEY,
    epoch        bigint NOT NULL,
    sequence     bigint NOT NULL,
    position     text COLLATE "C" NOT NULL,
    origin       uuid,
    histories    jsonb,
    db_user      text NOT NULL DEFAULT session_user,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE cursor_past IS 'ordered-dispatcher: the last numbers of cursors that are gone; do not delete';

-- The functions have the rights of their owner, so that other roles need no right to cursor_past.
-- They name no schema: it becomes part of their search_path below.
-- +goose StatementBegin
CREATE FUNCTION cursor_keep_past() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    name text;
BEGIN
    IF TG_OP <> 'TRUNCATE' THEN
        name := OLD.process_name;
    END IF;
    -- A cursor that is renamed takes its origin and its histories along.
    INSERT INTO cursor_past AS past (process_name, epoch, sequence, position, origin, histories)
    SELECT c.process_name, c.epoch, c.sequence, c.position, CASE WHEN TG_OP <> 'UPDATE' THEN c.origin END, CASE WHEN TG_OP <> 'UPDATE' THEN c.histories END FROM cursor c WHERE name IS NULL OR c.process_name = name
    ON CONFLICT (process_name) DO UPDATE SET
        epoch = greatest(past.epoch, excluded.epoch),
        sequence = greatest(past.sequence, excluded.sequence),
        position = excluded.position,
        origin = excluded.origin,
        histories = excluded.histories,
        db_user = session_user,
        at = clock_timestamp();
    IF TG_OP = 'UPDATE' THEN
        RETURN NEW;
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd

-- The gap is 10,000: more than a worker can have sent beyond its last checkpoint.
-- +goose StatementBegin
CREATE FUNCTION cursor_continue() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last record;
BEGIN
    SELECT p.epoch, p.sequence, p.origin, p.histories INTO last FROM cursor_past p WHERE p.process_name = NEW.process_name;
    NEW.epoch := greatest(NEW.epoch, last.epoch + 1);
    NEW.sequence := greatest(NEW.sequence, last.sequence + 10000);
    IF TG_OP = 'INSERT' THEN
        NEW.origin := coalesce(last.origin, NEW.origin);
        IF NEW.histories = '[]' THEN -- else it begins one of its own
            NEW.histories := coalesce(last.histories, NEW.histories);
        END IF;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- Retention keeps the last event that shows what happened to a name: without it a cursor that was
-- deleted would be made anew, and send everything again. It also keeps the last configuration,
-- which shows the table that a name without a schema meant.
-- +goose StatementBegin
CREATE FUNCTION cursor_event_keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'cursor_event says which cursors there were, and keeps one that was deleted from sending everything again: DELETE the old rows instead';
    END IF;
    IF EXISTS (
        SELECT FROM cursor_event e
        WHERE e.process_name = OLD.process_name AND e.id > OLD.id
            AND (e.action = 'configure') = (OLD.action = 'configure')
            AND e.action IN ('create', 'rename', 'renamed', 'forget', 'configure')
    ) THEN
        RETURN OLD;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION cursor_keep_past(), cursor_continue(), cursor_event_keep() FROM PUBLIC;

-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['cursor_keep_past', 'cursor_continue', 'cursor_event_keep'] LOOP
        EXECUTE pg_catalog.format('ALTER FUNCTION %I() SET search_path = pg_catalog, %I, pg_temp', name, pg_catalog.current_schema());
    END LOOP;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER keep_past BEFORE DELETE OR UPDATE OF process_name ON cursor FOR EACH ROW EXECUTE FUNCTION cursor_keep_past();
CREATE TRIGGER keep_past_of_all BEFORE TRUNCATE ON cursor FOR EACH STATEMENT EXECUTE FUNCTION cursor_keep_past();
CREATE TRIGGER continue_past BEFORE INSERT OR UPDATE OF process_name ON cursor FOR EACH ROW EXECUTE FUNCTION cursor_continue();
CREATE TRIGGER keep_last BEFORE DELETE ON cursor_event FOR EACH ROW
    WHEN (OLD.action IN ('create', 'rename', 'renamed', 'forget', 'configure')) EXECUTE FUNCTION cursor_event_keep();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON cursor_event FOR EACH STATEMENT EXECUTE FUNCTION cursor_event_keep();

-- The role that was logged in, beside the claimed actor.
ALTER TABLE cursor_event ADD COLUMN db_user text;
ALTER TABLE cursor_event ALTER COLUMN db_user SET DEFAULT session_user;

-- A worker that starts after a restore looks here whether another process has halted over it.
CREATE INDEX cursor_event_restored ON cursor_event (at) WHERE action = 'halt' AND detail->>'class' = 'restored';

-- Which workers run which process: status looks here, and the audit may be long.
CREATE INDEX cursor_event_watch ON cursor_event (process_name) WHERE action = 'watch';

-- +goose Down
LOCK TABLE cursor IN ACCESS EXCLUSIVE MODE;
INSERT INTO cursor_event (process_name, actor, action, detail)
SELECT process_name, session_user, 'downgrade', pg_catalog.jsonb_build_object('horizon', horizon::text)
FROM cursor
WHERE timeline <> ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int;
DROP INDEX cursor_event_restored;
DROP INDEX cursor_event_watch;
DROP TRIGGER keep_past ON cursor;
DROP TRIGGER keep_past_of_all ON cursor;
DROP TRIGGER continue_past ON cursor;
DROP TRIGGER keep_all ON cursor_event;
DROP TRIGGER keep_last ON cursor_event;
DROP FUNCTION cursor_keep_past();
DROP FUNCTION cursor_continue();
DROP FUNCTION cursor_event_keep();
DROP TABLE cursor_past;
ALTER TABLE cursor_event DROP COLUMN db_user;
ALTER TABLE cursor DROP COLUMN horizon;
ALTER TABLE cursor DROP COLUMN histories;
ALTER TABLE cursor DROP COLUMN origin;
ALTER TABLE cursor DROP COLUMN database_oid;
UPDATE cursor SET failed_class = 'permanent' WHERE failed_class IN ('refused', 'unreadable');
UPDATE cursor SET failed_class = 'transient' WHERE failed_class = 'unreached';
UPDATE cursor SET failed_class = 'restored' WHERE failed_class IN ('clock', 'reset', 'old_primary');
ALTER TABLE cursor DROP CONSTRAINT cursor_failed_class_check;
ALTER TABLE cursor ADD CONSTRAINT cursor_failed_class_check
    CHECK (failed_class IN ('transient', 'permanent', 'unknown', 'restored'));
