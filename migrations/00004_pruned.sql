-- How far rows of source tables are gone, because retention removed them.
--
-- Names are unqualified: set search_path to the schema before you run this.

-- +goose Up
-- Positions of different orders cannot be compared. A table that two processes read in different
-- orders has a row for each order in which all of its removals are known.
CREATE TABLE cursor_pruned (
    table_name text COLLATE "C" NOT NULL,  -- with its schema
    kind       text COLLATE "C" NOT NULL,  -- the order: the position's part before the colon, and the columns
    through    text COLLATE "C" NOT NULL,  -- no row after this position was removed
    mode       text NOT NULL,              -- of the rule that removed the last rows
    place      text NOT NULL DEFAULT '',   -- where they are; '' if nowhere
    removed    bigint NOT NULL DEFAULT 0,  -- rows in all
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (table_name, kind)
) WITH (fillfactor = 50);

COMMENT ON TABLE cursor_pruned IS 'ordered-dispatcher: how far rows of source tables were removed; a seek looks here';

-- +goose Down
DROP TABLE cursor_pruned;
