package table

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const foreignSQL = `
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nowhere;`

func TestInspect_WhatIsNoTableIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+foreignSQL+`
		CREATE VIEW app.a_view AS SELECT * FROM app.bookings;
		CREATE MATERIALIZED VIEW app.a_matview AS SELECT * FROM app.bookings;
		CREATE FOREIGN TABLE app.a_foreign (id bigint NOT NULL, created_at timestamptz NOT NULL) SERVER elsewhere;
		CREATE TYPE app.a_type AS (id bigint);`)
	for table, what := range map[string]string{
		"a_view":          "view",
		"a_matview":       "materialized view",
		"a_foreign":       "foreign table",
		"a_type":          "composite type",
		"bookings_id_seq": "sequence",
		"bookings_order":  "index",
	} {
		f := found(t, bookings(t, pool, Config{Table: "app." + table}),
			fmt.Sprintf("app.%s is a %s: its inserters hold no lock that a fence could see", table, what))
		require.Equal(t, "name the table behind it in source.table", f.Fix)
	}
}

func TestInspect_ForeignTableAmongThePartsIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app;
		CREATE TABLE app.bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp()) PARTITION BY LIST (id);
		CREATE TABLE app.heirless (LIKE app.bookings INCLUDING ALL);`+foreignSQL+`
		CREATE FOREIGN TABLE app.part PARTITION OF app.bookings FOR VALUES IN (1) SERVER elsewhere;
		CREATE FOREIGN TABLE app.heir () INHERITS (app.heirless) SERVER elsewhere;`)
	fixed(t, pool, bookings(t, pool, Config{}), "app.part, a part of app.bookings, is a foreign table")
	fixed(t, pool, bookings(t, pool, Config{Table: "app.heirless"}), "app.heir, a part of app.heirless, is a foreign table")
}

func TestInspect_StandbyIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"max_connections": "20"})
	standby := pgtest.Standby(t, server)
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	exec(t, pool, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`)
	follower := pgtest.Pool(t, standby.URL(), pgtest.PoolConfig{})
	await(t, "the standby has caught up", func() bool {
		return pgtest.Value[bool](t, follower, `SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'bookings_order')`)
	})
	s := bookings(t, follower, Config{})
	f := found(t, s, "the server is a standby: what it shows may lag, and a cursor cannot be advanced there")
	require.Equal(t, "connect to the primary, for example with target_session_attrs=read-write in the URL", f.Fix)

	// A source that knew the primary finds itself on the standby.
	primary := bookings(t, pool, Config{})
	records := readAll(t, primary, "", 10)
	primary.pool = follower
	_, err := primary.Read(t.Context(), "", 10)
	require.ErrorContains(t, err, "the server is a standby: connect to the primary (SQLSTATE 25006)")
	require.False(t, processor.IsPermanent(err), "a failover will find the primary")

	// The fix: the standby becomes the primary, whose writers were never seen.
	require.True(t, pgtest.Value[bool](t, follower, `SELECT pg_promote()`))
	w := begun(t, follower, `INSERT INTO app.bookings (note) VALUES ('a')`)
	exec(t, follower, `INSERT INTO app.bookings (note) VALUES ('b')`)
	holdsBack(t, primary, last(records))
	w.do(`COMMIT`)
	require.Equal(t, []string{"a", "b"}, notes(t, readAll(t, primary, last(records), 10)))
	sound(t, s)
}

func TestInspect_RowSecurityIsRefused(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`
		INSERT INTO app.bookings (note) VALUES ('mine'), ('yours');
		CREATE POLICY mine ON app.bookings USING (note = 'mine');`)
	name, pool := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s; GRANT SELECT ON SEQUENCE app.bookings_id_seq TO %[1]s`, name))
	s := bookings(t, pool, Config{})
	sound(t, s)
	records := readAll(t, s, "", 1)

	exec(t, admin, `ALTER TABLE app.bookings ENABLE ROW LEVEL SECURITY`)
	_, err := s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, `query would be affected by row-level security policy for table "bookings" (SQLSTATE 42501)`)
	require.True(t, processor.IsPermanent(err))
	_, err = s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "and a row that is hidden would be passed over")
	fixed(t, admin, s, fmt.Sprintf("row-level security hides rows of app.bookings from role %s", name))
	require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
}

// A role that may set row_security for itself gains nothing by it.
func TestInspect_RowSecurityOfARoleThatTurnedItOffIsRefused(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`ALTER TABLE app.bookings ENABLE ROW LEVEL SECURITY`)
	name, _ := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s; GRANT SELECT ON SEQUENCE app.bookings_id_seq TO %[1]s; ALTER ROLE %[1]s SET row_security = off`, name))
	found(t, bookings(t, login(t, admin, name, ""), Config{}), "row-level security hides rows of app.bookings")
}

func TestInspect_RowsThatArriveByReplicationAreNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`
		CREATE SUBSCRIPTION elsewhere CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false, slot_name = NONE);
		INSERT INTO pg_subscription_rel SELECT oid, 'app.bookings'::regclass, 'r', NULL FROM pg_subscription WHERE subname = 'elsewhere';`)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), `DROP SUBSCRIPTION elsewhere`)
		require.NoError(t, err)
	})
	f := found(t, bookings(t, pool, Config{}), "rows of app.bookings arrive by logical replication, with stamps of another server")
	require.Equal(t, Warn, f.Severity)
	require.Equal(t, "read the table where its rows are inserted", f.Fix)
}

// A subscription may name a partition alone.
func TestInspect_RowsThatArriveInAPartitionByReplicationAreNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, partitionedSQL+`
		CREATE SUBSCRIPTION leaf CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false, slot_name = NONE);
		INSERT INTO pg_subscription_rel SELECT oid, 'app.bookings_b1'::regclass, 'r', NULL FROM pg_subscription WHERE subname = 'leaf';`)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), `DROP SUBSCRIPTION leaf`)
		require.NoError(t, err)
	})
	found(t, bookings(t, pool, Config{}), "rows of app.bookings arrive by logical replication, with stamps of another server")
	found(t, bookings(t, pool, Config{Table: "app.bookings_b1"}), "rows of app.bookings_b1 arrive by logical replication")
}

func TestInspect_MissingGrantsAreNamedWithTheGrant(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`)
	name, pool := user(t, admin)
	quoted := pgx.Identifier{name}.Sanitize()
	byTime := bookings(t, pool, Config{})
	narrow := bookings(t, pool, Config{Columns: Columns{Key: "note", Payload: "id"}})
	byID := bookings(t, pool, Config{Order: ID, Columns: Columns{Payload: "id"}})

	// Without the schema, nothing in it can be told.
	f := found(t, byTime, fmt.Sprintf("role %s may not use schema app", name))
	require.Equal(t, `GRANT USAGE ON SCHEMA "app" TO `+quoted, f.Fix)
	fixed(t, admin, byTime, "may not use schema")

	f = found(t, byID, fmt.Sprintf("role %s may not read \"id\" of app.bookings", name))
	require.Equal(t, fmt.Sprintf(`GRANT SELECT ("id") ON "app"."bookings" TO %s`, quoted), f.Fix)
	fixed(t, admin, byID, "may not read \"id\"")
	f = found(t, byID, fmt.Sprintf("role %s may not read sequence app.bookings_id_seq, whose last value is the fence", name))
	require.Equal(t, "GRANT SELECT ON SEQUENCE app.bookings_id_seq TO "+quoted, f.Fix)
	fixed(t, admin, byID, "may not read sequence")
	sound(t, byID)
	require.Len(t, readAll(t, byID, "", 10), 1)

	fixed(t, admin, narrow, `may not read "created_at", "note", "xmin" of app.bookings`)
	sound(t, narrow)
	exec(t, admin, fmt.Sprintf(`REVOKE SELECT (id, created_at, note, xmin) ON app.bookings FROM %s`, name))
	f = found(t, byTime, `may not read "created_at", "id", "note", "xmin" of app.bookings`)
	require.Equal(t, fmt.Sprintf(`GRANT SELECT ON "app"."bookings" TO %s`, quoted), f.Fix)
	fixed(t, admin, byTime, `may not read "created_at", "id", "note", "xmin"`)
	sound(t, byTime)
	require.Len(t, readAll(t, byTime, "", 10), 1)

	exec(t, admin, fmt.Sprintf(`REVOKE SELECT ON app.bookings FROM %s`, name))
	_, err := byTime.Read(t.Context(), "", 10)
	require.ErrorContains(t, err, "SQLSTATE 42501")
	require.True(t, processor.IsPermanent(err))
	_, err = byTime.Read(t.Context(), "", 10)
	require.ErrorContains(t, err, "fix: GRANT SELECT ON")
}

// What the where clause reads, only the server knows.
func TestInspect_WhereThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	for where, reason := range map[string]string{
		"nope = 1":             `column "nope" does not exist (SQLSTATE 42703)`,
		"note = ":              "syntax error",
		"note":                 "argument of AND must be type boolean",
		"app_function(id)":     "function app_function(bigint) does not exist",
		"true; DROP TABLE x":   "syntax error",
		"$1 = id":              "SQLSTATE 08P01",
		"id = 1 /* unfinished": "unterminated /* comment",
	} {
		f := found(t, bookings(t, pool, Config{Where: where}), "the server refuses to read app.bookings: ")
		require.Equal(t, "fix source.where; names outside pg_catalog need their schema", f.Fix, where)
		require.Contains(t, f.Problem, reason, where)
	}
}
