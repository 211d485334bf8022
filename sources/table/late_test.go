package table

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const lateRows = 100_000

var lateTables = map[string]string{
	"ids": `CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
		CREATE INDEX ON app.bookings (created_at, id);`,
	"partitions": `CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text, PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at);
		CREATE TABLE app.p0 PARTITION OF app.bookings FOR VALUES FROM (MINVALUE) TO ('2026-01-01 12:00+00');
		CREATE TABLE app.p1 PARTITION OF app.bookings FOR VALUES FROM ('2026-01-01 12:00+00') TO (MAXVALUE);
		CREATE INDEX ON app.bookings (created_at, id);`,
}

// lookedAt is the plan of a statement of the look for late rows, as it is run.
func lookedAt(t *testing.T, pool *pgxpool.Pool, sql, at, id, horizon string) (plan node) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	exec(t, tx, settingsSQL)
	exec(t, tx, "PREPARE looked AS "+sql)
	execute := fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked(%s, %s, %s)", literal(at), literal(id), literal(horizon))
	printed := pgtest.Value[string](t, tx, execute, pgx.QueryExecModeSimpleProtocol)
	exec(t, tx, "DEALLOCATE looked") // it outlives the transaction
	var plans []struct{ Plan node }
	require.NoError(t, json.Unmarshal([]byte(printed), &plans))
	return plans[0].Plan
}

// TestPlan_LateRowsAreFoundByTheirIDs: the look reads what was inserted behind the position, and not what was delivered, with
// and without statistics.
func TestPlan_LateRowsAreFoundByTheirIDs(t *testing.T) {
	t.Parallel()
	for name, ddl := range lateTables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, `CREATE SCHEMA app;`+ddl+fmt.Sprintf(
				`INSERT INTO app.bookings (created_at, note) SELECT timestamptz '2026-01-01 00:00+00' + i * interval '0.8 s', repeat('x', 200) FROM generate_series(1, %d) i`, lateRows))
			horizon := pgtest.Value[string](t, pool, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text`)
			exec(t, pool, `INSERT INTO app.bookings (created_at, note) SELECT timestamptz '2026-01-01 00:00+00' + i * interval '0.8 s', 'late' FROM generate_series(1, 10) i`)
			s := bookings(t, pool, Config{})
			l := s.mustLayout(t)
			const lag = 100
			at := pgtest.Value[string](t, pool, `SELECT created_at::text FROM app.bookings WHERE id = $1`, lateRows-lag)
			for _, analyze := range []string{"", "ANALYZE app.bookings"} {
				exec(t, pool, analyze)
				for _, id := range []int{lateRows - lag, lateRows + 1000} { // of a row, and of none
					plan := lookedAt(t, pool, l.floorSQL(s.config), at, fmt.Sprint(id), horizon)
					require.Less(t, plan.Hit+plan.Read, 50, "blocks of the floor")
				}
				plan := lookedAt(t, pool, l.lateSQL(s.config, l.above(s.config, lateRows-lag)), at, fmt.Sprint(lateRows-lag), horizon)
				require.EqualValues(t, 1, plan.Rows)
				require.Less(t, plan.Hit+plan.Read, 50, "blocks of the look")
				for _, n := range plan.all() {
					require.NotEqual(t, "Seq Scan", n.Type)
					if strings.HasPrefix(n.Type, "Index") && !strings.HasPrefix(n.Table, "pg_") { // a catalog's is for the row that was found
						require.Contains(t, n.Cond, "id > '")
						require.NotContains(t, n.Cond, "created_at")
					}
				}
			}
		})
	}
}

// TestLate_ADayThatTakesTooLongIsFollowedByAShorterLook: and the log says so. After the clock was seen to be behind there is no
// shorter one: the process halts, and an operator looks.
func TestLate_ADayThatTakesTooLongIsFollowedByAShorterLook(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app;
		CREATE TABLE app.bookings (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE INDEX ON app.bookings (created_at, id);
		CREATE FUNCTION app.costly(at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			IF at < clock_timestamp() - interval '1 hour' THEN PERFORM pg_sleep(60); END IF;
			RETURN true;
		END $$;`)
	exec(t, pool, `INSERT INTO app.bookings (created_at) VALUES (clock_timestamp() - interval '2 hours'), (DEFAULT)`)
	var log strings.Builder
	s := bookings(t, pool, Config{Where: "app.costly(created_at)", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	at, err := s.At(t.Context(), time.Now())
	require.NoError(t, err)
	_, err = s.Read(t.Context(), at, 1)
	require.NoError(t, err)

	s.waits.look = 500 * time.Millisecond
	late, err := s.Late(t.Context(), at, "3", false)
	require.NoError(t, err)
	require.Contains(t, late.Reason, "was inserted or changed since")
	require.NotContains(t, log.String(), "takes too long")

	exec(t, pool, `DELETE FROM app.bookings WHERE created_at > clock_timestamp() - interval '1 hour'`)
	late, err = s.Late(t.Context(), at, "3", false)
	require.NoError(t, err)
	require.Empty(t, late.Reason)
	require.Contains(t, late.Short, "covered only the last 10 minutes")
	require.Contains(t, log.String(), late.Short)

	late, err = s.Late(t.Context(), at, "3", true)
	require.NoError(t, err)
	require.Contains(t, late.Reason, "the search for rows of app.bookings that a clock that was behind stamped before the cursor did not end within 500ms")
	require.Empty(t, late.From, "it is for an operator to find the first row")
	require.Empty(t, late.Short)
}

// TestLate_ALookThatSomebodyCancelsIsNoShortOne: as one who ends what takes long. It is not known what it would have found.
func TestLate_ALookThatSomebodyCancelsIsNoShortOne(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"uuid PRIMARY KEY DEFAULT gen_random_uuid()", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			pool := database(t, `CREATE SCHEMA app;
				CREATE TABLE app.bookings (id `+id+`, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
				CREATE INDEX ON app.bookings (created_at, id);
				CREATE FUNCTION app.costly(at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
					IF at < clock_timestamp() - interval '1 hour' THEN RAISE query_canceled; END IF;
					RETURN true;
				END $$;`)
			exec(t, pool, `INSERT INTO app.bookings (created_at) VALUES (clock_timestamp() - interval '2 hours')`)
			s := bookings(t, pool, Config{Where: "app.costly(created_at)"})
			at, err := s.At(t.Context(), time.Now())
			require.NoError(t, err)
			_, err = s.Read(t.Context(), at, 1)
			require.NoError(t, err)
			late, err := s.Late(t.Context(), at, "3", false)
			require.ErrorContains(t, err, "57014")
			require.NotErrorIs(t, err, errSlow)
			require.False(t, processor.IsPermanent(err), "it is tried again")
			require.Empty(t, late.Short)
			late, err = s.Late(t.Context(), at, "3", true)
			require.ErrorContains(t, err, "57014")
			require.Empty(t, late.Reason, "nor does the process halt")
		})
	}
}

// TestLate_TrustsNoIDsOfASequenceThatCannotBeRead: a role without the right, and a sequence that has made no id since it was
// set. Rows are looked for by time then, and one that was delivered and changed since looks late.
func TestLate_TrustsNoIDsOfASequenceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const inserted = `; INSERT INTO app.bookings (created_at) VALUES (clock_timestamp() - interval '4 hours')`
	for name, c := range map[string]struct {
		readable bool
		then     string
		want     string
	}{
		"set back, no right":      {false, `SELECT setval('app.bookings_id_seq', -1000)` + inserted, "row -999 of app.bookings"},
		"set back, readable":      {true, `SELECT setval('app.bookings_id_seq', -1000)` + inserted, "row -999 of app.bookings"},
		"set back, not called":    {true, `INSERT INTO app.bookings VALUES (-5, clock_timestamp() - interval '4 hours'); SELECT setval('app.bookings_id_seq', -1000, false)`, "row -5 of app.bookings"},
		"changed since, no right": {false, `UPDATE app.bookings SET note = 'changed' WHERE id = 1` + inserted, "was inserted or changed since"},
		"changed since, readable": {true, `UPDATE app.bookings SET note = 'changed' WHERE id = 1` + inserted, "was inserted since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := database(t, `CREATE SCHEMA app;
				CREATE TABLE app.bookings (id bigint GENERATED BY DEFAULT AS IDENTITY (MINVALUE -1000 START 1) PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
				CREATE UNIQUE INDEX ON app.bookings (created_at, id)`)
			exec(t, admin, `INSERT INTO app.bookings (created_at) SELECT clock_timestamp() - interval '3 hours' FROM generate_series(1, 3)`)
			role, pool := user(t, admin)
			exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s`, role))
			if c.readable {
				exec(t, admin, `GRANT SELECT ON SEQUENCE app.bookings_id_seq TO `+role)
			}
			s := bookings(t, pool, Config{})
			at := last(readAll(t, s, "", 10))
			horizon := pgtest.Value[string](t, admin, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text`)
			exec(t, admin, c.then)
			late, err := s.Late(t.Context(), at, horizon, false)
			require.NoError(t, err)
			require.Contains(t, late.Reason, c.want)
		})
	}
}
