package table

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// through reads in pages of limit to the end, over what is passed, and returns where
// the cursor would be then.
func through(t testing.TB, s *Source, after cursor.Position, limit int) (records []processor.Record, end cursor.Position, err error) {
	t.Helper()
	await(t, "everything is read", func() bool {
		var page processor.Page
		if page, err = s.Read(t.Context(), after, limit); err != nil {
			return true
		}
		records = append(records, page.Records...)
		switch n := len(page.Records); {
		case n > 0:
			after = page.Records[n-1].Position
		case page.Passed != "":
			require.Greater(t, page.Passed, after)
			after = page.Passed
		default:
			return !page.Waiting
		}
		return false
	})
	return records, after, err
}

// A million rows of which few are records are gone through in steps, and then no
// more: what an idle process looks at does not depend on the condition.
func TestRead_IdleCostIsFlatWhateverTheCondition(t *testing.T) {
	t.Parallel()
	const rows = 120_000
	for name, config := range map[string]Config{
		"none":          {Where: "id < 0"},
		"the first":     {Where: "id = 1"},
		"the last":      {Where: fmt.Sprintf("id = %d", rows)},
		"few":           {Where: "id % 40000 = 0"},
		"none, by id":   {Where: "id < 0", Order: ID},
		"few, by id":    {Where: "id % 40000 = 0", Order: ID},
		"every second":  {Where: "id % 2 = 0"},
		"no condition":  {},
		"partial index": {Where: "note = 'y'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, filled(rows, "bigint", "i", "")+fmt.Sprintf(`
				CREATE SEQUENCE app.s; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s');
				SELECT setval('app.s', %d); CREATE UNIQUE INDEX ON app.bookings (id);
				CREATE INDEX ON app.bookings (created_at, id) WHERE note = 'y'`, rows), config)
			want := pgtest.Value[int](t, pool, "SELECT count(*) FROM app.bookings WHERE "+orTrue(config.Where))
			records, end, err := through(t, s, "", 500)
			require.NoError(t, err)
			require.Len(t, records, want)

			l := s.mustLayout(t)
			require.Equal(t, name == "partial index", l.partial)
			s.stretch.begin(end)
			plan := explained(t, s, s.stretch.to, s.scan(l, 500), "read")
			require.Zero(t, plan.Rows)
			require.Less(t, plan.Hit+plan.Read, 8, "blocks of an idle read")

			first := explained(t, s, "", maxScan, "read")
			require.LessOrEqual(t, first.Rows, float64(maxScan))
			require.Less(t, first.Hit+first.Read, maxScan, "blocks of the largest read")
		})
	}
}

func orTrue(where string) string {
	if where == "" {
		return "true"
	}
	return where
}

// The cursor is to move only over many rows at a time: what is idle writes nothing.
func TestRead_FewRowsWithoutARecordAreNotWorthAWrite(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+fmt.Sprintf(`INSERT INTO app.bookings (note) SELECT 'no' FROM generate_series(1, %d)`, passRows-1), Config{Where: "note = 'yes'"})
	later(t, pool)
	for range 3 {
		page := read(t, s, "", 500)
		require.Empty(t, page.Records)
		require.Empty(t, page.Passed)
		require.False(t, page.Waiting)
	}
	exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('no'), ('no')`)
	later(t, pool)
	page := read(t, s, "", 500)
	require.NotEmpty(t, page.Passed)
	exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('yes')`)
	records, _, err := through(t, s, page.Passed, 500)
	require.NoError(t, err)
	require.Len(t, records, 1)
}

// A record of a transaction that was open when rows after it were looked at is not
// among those that are passed over.
func TestRead_WhatMayStillBePrecededIsNotPassedOver(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Config{"created_at": {}, "id": {Order: ID}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL)
			config.Where = "note = 'yes'"
			s := bookings(t, pool, config)
			read(t, s, "", 1)
			writer := begun(t, pool, `INSERT INTO app.bookings (note) VALUES ('yes')`)
			exec(t, pool, fmt.Sprintf(`INSERT INTO app.bookings (note) SELECT 'no' FROM generate_series(1, %d)`, passRows+1))
			later(t, pool)
			for range 3 {
				page := read(t, s, "", 500)
				require.Empty(t, page.Records)
				require.Empty(t, page.Passed)
			}
			writer.do(`COMMIT`)
			records, _, err := through(t, s, "", 500)
			require.NoError(t, err)
			require.Equal(t, []string{"1"}, ids(records))
		})
	}
}

// What a source remembers to have looked at holds for no earlier position.
func TestRead_AfterASeekBackEverythingIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (note) SELECT CASE WHEN i % 50 = 0 THEN 'yes' ELSE 'no' END FROM generate_series(1, 500) i`, Config{Where: "note = 'yes'"})
	later(t, pool)
	first, _, err := through(t, s, "", 3)
	require.NoError(t, err)
	require.Len(t, first, 10)
	for i := len(first) - 1; i >= 0; i-- {
		again, _, err := through(t, s, first[i].Position, 2)
		require.NoError(t, err)
		require.Equal(t, ids(first[i+1:]), ids(again))
	}
}

// tiedSQL lets two rows have one position, in two partitions.
const tiedSQL = `
CREATE SCHEMA app;
CREATE TABLE app.bookings (
	id bigint NOT NULL,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	region int NOT NULL,
	taken boolean NOT NULL DEFAULT true,
	PRIMARY KEY (created_at, id, region)
) PARTITION BY LIST (region);
CREATE TABLE app.b0 PARTITION OF app.bookings FOR VALUES IN (0);
CREATE TABLE app.b1 PARTITION OF app.bookings FOR VALUES IN (1);
CREATE TABLE app.b2 PARTITION OF app.bookings FOR VALUES IN (2);
CREATE SEQUENCE app.s;`

// Of two rows with one position neither is passed over, wherever a page ends.
func TestRead_TwoRowsOfOnePositionAreNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, tiedSQL+`
		INSERT INTO app.bookings (id, created_at, region)
		SELECT i, '2026-01-01 00:00+00'::timestamptz + i * interval '1 s', r
		FROM generate_series(1, 5) i, generate_series(0, 1) r WHERE r = 0 OR i = 3`)
	for _, config := range []Config{{}, {Where: "true"}, {MaxBytes: 1}} {
		for limit := 1; limit <= 7; limit++ {
			s := bookings(t, pool, config)
			records, _, err := through(t, s, "", limit)
			require.ErrorContains(t, err, "two rows with id 3 have one position", "limit %d", limit)
			require.True(t, processor.IsPermanent(err))
			require.Equal(t, []string{"1", "2"}, ids(records), "limit %d", limit)
		}
	}
	exec(t, pool, `UPDATE app.bookings SET id = 33 WHERE id = 3 AND region = 1`)
	records, _, err := through(t, bookings(t, pool, Config{}), "", 2)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3", "33", "4", "5"}, ids(records))
}

// Rows with any positions, of which Config.Where takes any: each record comes once
// and in order, or the read ends before the first two that share a position.
func TestRead_TiedRowsAndRareConditions(t *testing.T) {
	t.Parallel()
	pool := database(t, tiedSQL)
	random := rand.New(rand.NewPCG(8, 4))
	producer := newSession(t, pool)
	for round := range 45 {
		producer.do(`TRUNCATE app.bookings`)
		producer.do(`SELECT setseed($1)`, float64(round)/100)
		producer.do(`INSERT INTO app.bookings (id, created_at, region, taken)
			SELECT id, '2026-01-01 00:00+00'::timestamptz + (id / 10) * interval '1 s', region, random() < $1
			FROM generate_series(1, 400) id, generate_series(0, 2) region WHERE random() < $2`,
			[]float64{0.01, 0.1, 0.6}[round%3], []float64{0.3, 0.7, 1}[round/3%3])
		var want []string
		rows, err := pool.Query(t.Context(), `SELECT id::text, count(*) FROM app.bookings WHERE taken GROUP BY bookings.id ORDER BY bookings.id`)
		require.NoError(t, err)
		twins := ""
		for rows.Next() {
			var id string
			var n int
			require.NoError(t, rows.Scan(&id, &n))
			if n > 1 && twins == "" {
				twins = id
			}
			if twins == "" {
				want = append(want, id)
			}
		}
		require.NoError(t, rows.Err())
		limit := []int{1, 1, 2, 3, 7, 500}[random.IntN(6)]
		records, _, err := through(t, bookings(t, pool, Config{Where: "taken"}), "", limit)
		require.Equal(t, want, append([]string(nil), ids(records)...), "round %d, limit %d", round, limit)
		if twins != "" {
			require.ErrorContains(t, err, "two rows with id "+twins+" have one position")
		} else {
			require.NoError(t, err)
		}
	}
}

// What proves that positions differ: nothing but a unique index of all rows whose
// columns are all in the position.
func TestInspect_WhatProvesThatPositionsDiffer(t *testing.T) {
	t.Parallel()
	plain := func(more string) string {
		return `CREATE SCHEMA app; CREATE SEQUENCE app.s; CREATE TABLE app.bookings (id bigint NOT NULL DEFAULT nextval('app.s'), created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
			CREATE INDEX ON app.bookings (created_at, id); CREATE INDEX ON app.bookings (id);` + more
	}
	for name, c := range map[string]struct {
		sql    string
		config Config
		shared bool
	}{
		"none":                    {plain(``), Config{}, true},
		"id":                      {plain(`CREATE UNIQUE INDEX ON app.bookings (id)`), Config{}, false},
		"created_at, id":          {plain(`CREATE UNIQUE INDEX ON app.bookings (created_at, id)`), Config{}, false},
		"deferrable":              {plain(`ALTER TABLE app.bookings ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED`), Config{}, false},
		"another column":          {plain(`CREATE UNIQUE INDEX ON app.bookings (id, note)`), Config{}, true},
		"of some rows":            {plain(`CREATE UNIQUE INDEX ON app.bookings (id) WHERE note IS NULL`), Config{}, true},
		"an expression":           {plain(`CREATE UNIQUE INDEX ON app.bookings ((id / 2))`), Config{}, true},
		"a view on it":            {plain(`CREATE UNIQUE INDEX ON app.bookings (id); CREATE VIEW app.seen AS SELECT * FROM app.bookings; ALTER VIEW app.seen ALTER created_at SET DEFAULT clock_timestamp()`), Config{}, false},
		"by id, created_at too":   {plain(`CREATE UNIQUE INDEX ON app.bookings (created_at, id)`), Config{Order: ID}, true},
		"by id":                   {plain(`CREATE UNIQUE INDEX ON app.bookings (id)`), Config{Order: ID}, false},
		"a partition key":         {tiedSQL, Config{}, true},
		"one partition by itself": {tiedSQL + `CREATE UNIQUE INDEX ON app.b0 (id)`, Config{Table: "app.b0"}, false},
		"of each partition alone": {tiedSQL + `CREATE UNIQUE INDEX ON app.b0 (id); CREATE UNIQUE INDEX ON app.b1 (id); CREATE UNIQUE INDEX ON app.b2 (id)`, Config{}, true},
		"heirs":                   {plain(`CREATE UNIQUE INDEX ON app.bookings (id); CREATE TABLE app.heir () INHERITS (app.bookings); CREATE UNIQUE INDEX ON app.heir (id)`), Config{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := bookings(t, database(t, c.sql), c.config)
			require.Equal(t, c.shared, s.mustLayout(t).shared)
		})
	}
}
