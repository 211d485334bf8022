package table

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// readsOn fails once, if at all, and then reads on.
func readsOn(t testing.TB, s *Source, after processor.Record, want ...string) {
	t.Helper()
	if _, err := s.Read(t.Context(), after.Position, 10); err != nil {
		t.Logf("the first read: %v", err)
	}
	require.Equal(t, want, ids(readAll(t, s, after.Position, 10)))
}

func TestRead_TableDroppedMidRunIsNamedAndReadAgainWhenItIsBack(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`, Config{})
	records := readAll(t, s, "", 10)

	exec(t, pool, `ALTER TABLE app.bookings RENAME TO old`)
	for range 3 {
		_, err := s.Read(t.Context(), last(records), 10)
		require.ErrorContains(t, err, "app.bookings")
		require.ErrorContains(t, err, "does not exist")
		require.True(t, processor.IsPermanent(err))
	}
	exec(t, pool, `ALTER TABLE app.old RENAME TO bookings; INSERT INTO app.bookings DEFAULT VALUES`)
	readsOn(t, s, records[0], "2")

	exec(t, pool, `DROP TABLE app.bookings`)
	_, err := s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "does not exist")
	_, err = s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "table app.bookings does not exist; fix: create it, or name another in source.table")
}

func TestRead_SchemaDroppedMidRunIsNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{})
	read(t, s, "", 10)
	exec(t, pool, `DROP SCHEMA app CASCADE`)
	for range 2 {
		_, err := s.Read(t.Context(), "", 10)
		require.ErrorContains(t, err, "app")
		require.True(t, processor.IsPermanent(err))
	}
}

// The new table's writers were not seen in the samples of the old one.
func TestRead_TableSwappedMidRunIsFencedAnew(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`
		INSERT INTO app.bookings DEFAULT VALUES;
		CREATE TABLE app.new (LIKE app.bookings INCLUDING ALL);`, Config{})
	records := readAll(t, s, "", 10)

	exec(t, pool, `BEGIN; ALTER TABLE app.bookings RENAME TO old; ALTER TABLE app.new RENAME TO bookings; COMMIT`)
	w := begun(t, pool, `INSERT INTO app.bookings (id) VALUES (11)`)
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (12)`)
	later(t, pool)
	_, err := s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "the table was replaced by another of its name")
	require.False(t, processor.IsPermanent(err))
	holdsBack(t, s, last(records))
	w.do(`COMMIT`)
	require.Equal(t, []string{"11", "12"}, ids(readAll(t, s, last(records), 10)))
}

// The swap waits for a read in progress, and a read for the swap: neither sees
// one table's fence with the other's rows.
func TestRead_WaitsForAnAlterTableAndNoLongerThanLockTimeout(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`, Config{})
	records := readAll(t, s, "", 10)
	w := begun(t, pool, `LOCK TABLE app.bookings IN ACCESS EXCLUSIVE MODE`)
	began := time.Now()
	_, err := s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "SQLSTATE 55P03")
	require.False(t, processor.IsPermanent(err))
	require.GreaterOrEqual(t, time.Since(began), 5*time.Second)
	require.Less(t, time.Since(began), patience)
	w.do(`INSERT INTO app.bookings DEFAULT VALUES; COMMIT`)
	readsOn(t, s, records[0], "2")
}

func TestRead_GoesOnWhenColumnsChange(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]string{
		"added":            `ADD extra int DEFAULT 7`,
		"dropped":          `DROP note`,
		"of another type":  `ALTER note TYPE varchar(9)`,
		"id narrower":      `ALTER id TYPE integer`,
		"created_at local": `ALTER created_at TYPE timestamp USING created_at AT TIME ZONE 'utc', ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := inTimeZone(t, database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`), "UTC")
			s := bookings(t, pool, Config{})
			records := readAll(t, s, "", 10)
			exec(t, pool, `ALTER TABLE app.bookings `+alter)
			later(t, pool)
			exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			readsOn(t, s, records[0], "2")
			s.layout.inspected = time.Now().Add(-inspectInterval)
			exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			readsOn(t, s, records[0], "2", "3")
		})
	}
}

func TestRead_IntegerIDThatBecomesBigintReadsOn(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`ALTER TABLE app.bookings ALTER id TYPE integer; INSERT INTO app.bookings DEFAULT VALUES`)
	for _, order := range []Order{CreatedAt, ID} {
		s := bookings(t, pool, Config{Order: order})
		records := readAll(t, s, "", 1)
		exec(t, pool, `ALTER TABLE app.bookings ALTER id TYPE bigint; ALTER SEQUENCE app.bookings_id_seq AS bigint;
			SELECT setval('app.bookings_id_seq', 3000000000); INSERT INTO app.bookings DEFAULT VALUES`)
		records = append(records, readAll(t, s, last(records), 10)...)
		require.Contains(t, ids(records), "3000000001")
		exec(t, pool, `DELETE FROM app.bookings WHERE id > 1; SELECT setval('app.bookings_id_seq', 1);
			ALTER SEQUENCE app.bookings_id_seq AS integer; ALTER TABLE app.bookings ALTER id TYPE integer`)
	}
}

func TestRead_IDOfAnotherFamilyMidRunIsRefused(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`, Config{})
	records := readAll(t, s, "", 10)
	exec(t, pool, `ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id TYPE uuid USING gen_random_uuid()`)
	_, err := s.Read(t.Context(), last(records), 10)
	require.True(t, processor.IsPermanent(err))
	_, err = s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "its table, order or id type is not what the cursor was advanced with")
	require.True(t, processor.IsPermanent(err))
}

func TestRead_ConfiguredColumnDroppedMidRunIsNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`, Config{Columns: Columns{Key: "note"}})
	records := readAll(t, s, "", 10)
	exec(t, pool, `ALTER TABLE app.bookings RENAME note TO remark`)
	for range 2 {
		_, err := s.Read(t.Context(), last(records), 10)
		require.ErrorContains(t, err, "note")
		require.True(t, processor.IsPermanent(err))
	}
	found(t, s, "table app.bookings has no column note")
	exec(t, pool, `ALTER TABLE app.bookings RENAME remark TO note; INSERT INTO app.bookings DEFAULT VALUES`)
	readsOn(t, s, records[0], "2")
}

func TestRead_DefaultChangedMidRunIsNoticedAndFencedAnew(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	log := &journal{}
	s := bookings(t, pool, Config{Latency: time.Millisecond, Logger: slog.New(log)})
	require.Empty(t, readAll(t, s, "", 10))
	require.Empty(t, log.all())

	exec(t, pool, `ALTER TABLE app.bookings ALTER created_at SET DEFAULT now()`)
	w := begun(t, pool, `SELECT 1`) // holds no lock of this table
	s.layout.inspected = time.Now().Add(-inspectInterval)
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
	holdsBack(t, s, "")
	require.Len(t, log.all(), 1)
	require.Contains(t, log.all()[0], "defaults to now()")
	w.do(`INSERT INTO app.bookings (id) VALUES (1); COMMIT`)
	require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))

	for range 3 {
		s.layout.inspected = time.Now().Add(-inspectInterval)
		read(t, s, "", 10)
	}
	require.Len(t, log.all(), 1, "a finding is logged once")
}

// A finding that names another number each time is another finding each time.
func TestRead_RemembersTheWarningsOfTheLastInspectionAlone(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	log := &journal{}
	s := bookings(t, pool, Config{Order: ID, Logger: slog.New(log)})
	for n := range 4 {
		exec(t, pool, `INSERT INTO app.bookings (id) VALUES ($1)`, 1000+n)
		s.layout = nil
		read(t, s, "", 10)
		require.Len(t, log.all(), n+1)
		require.Len(t, s.warned, 1)
	}
}

// A server that is away is no reason to give up.
func TestRead_ConnectionsLostMidRunAreReplaced(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`, Config{})
	records := readAll(t, s, "", 10)
	admin := newSession(t, pool)
	admin.do(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	admin.do(`INSERT INTO app.bookings DEFAULT VALUES`)
	await(t, "a connection is good again", func() bool {
		page, err := s.Read(t.Context(), last(records), 10)
		require.False(t, processor.IsPermanent(err))
		return err == nil && len(page.Records) == 1
	})
}
