package table

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A record that is too large is not fetched: it comes in its place, with its fault,
// and those beside it come whole.
func TestRead_ARecordThatIsTooLargeIsNotFetched(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Config{
		"row as JSON":       {},
		"text":              {Columns: Columns{Payload: "note"}},
		"json":              {Columns: Columns{Payload: "doc"}},
		"bytes":             {Columns: Columns{Payload: "raw"}},
		"condition":         {Where: "id % 2 = 1 OR id = 4"},
		"key":               {Columns: Columns{Key: "note", Payload: "n"}},
		"headers":           {Columns: Columns{Headers: "doc", Payload: "n"}},
		"id":                {Order: ID},
		"shared, condition": {Table: "app.shared", Where: "id > 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL+`
				ALTER TABLE app.bookings ADD n int DEFAULT 1, ADD doc json, ADD raw bytea;
				INSERT INTO app.bookings (note, doc, raw)
				SELECT repeat('x', size), json_build_object('a', repeat('y', size)), convert_to(repeat('z', size), 'UTF8')
				FROM (SELECT i, CASE WHEN i IN (4, 5, 9) THEN 3000000 ELSE 10 END AS size FROM generate_series(1, 9) i) rows ORDER BY i;
				CREATE TABLE app.shared AS TABLE app.bookings;
				ALTER TABLE app.shared ALTER id SET NOT NULL, ALTER created_at SET NOT NULL, ALTER created_at SET DEFAULT clock_timestamp();
				CREATE INDEX ON app.shared (created_at, id)`)
			later(t, pool)
			for _, bytes := range []int{1 << 20, 2999999} {
				for _, limit := range []int{1, 2, 500} {
					config.MaxRecordBytes = bytes
					records, _, err := through(t, bookings(t, pool, config), "", limit)
					require.NoError(t, err)
					for _, r := range records {
						if large := r.ID == "4" || r.ID == "5" || r.ID == "9"; !large {
							require.NoError(t, r.Fault)
							require.NotEmpty(t, r.Payload)
							continue
						}
						require.ErrorContains(t, r.Fault, fmt.Sprintf("and max_record_bytes is %d", bytes), "record %s, limit %d", r.ID, limit)
						require.Empty(t, r.Payload)
						require.NotEmpty(t, r.Position)
					}
					require.Equal(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM app.bookings WHERE "+orTrue(config.Where)), len(records))
				}
			}
			records, _, err := through(t, bookings(t, pool, Config{Columns: config.Columns, Where: config.Where, Order: config.Order}), "", 500)
			require.NoError(t, err)
			for _, r := range records {
				require.NoError(t, r.Fault)
			}
		})
	}
}

// A condition may use every name that a table may have: none of ours is in its way.
func TestRead_AConditionSeesNoNamesOfOurs(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"size", "record", "taken", "f0", "f1", "at", "t", "s", "waiting", "counted"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			for name, index := range map[string]string{"partial": " WHERE " + column + " > 0", "whole": ""} {
				_, s := sourceOn(t, fmt.Sprintf(`DROP SCHEMA IF EXISTS app CASCADE;
					CREATE SCHEMA app; CREATE TABLE app.bookings (
						id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), %[1]s int NOT NULL DEFAULT 1, note text);
					CREATE INDEX ON app.bookings (created_at, id)%[2]s;
					INSERT INTO app.bookings (note) VALUES ('one'), (repeat('x', 300000)), ('three')`, column, index), Config{Where: column + " > 0", MaxRecordBytes: 100_000})
				records := readAll(t, s, "", 10)
				require.Equal(t, []string{"1", "2", "3"}, ids(records), name)
				require.ErrorContains(t, records[1].Fault, "max_record_bytes is 100000")
				_, err := s.Lag(t.Context(), "")
				require.NoError(t, err)
				_, err = s.Between(t.Context(), "", last(records), 10)
				require.NoError(t, err)
				_, err = s.Before(t.Context(), "3")
				require.NoError(t, err)
				_, err = s.InspectRows(t.Context(), last(records))
				require.NoError(t, err)
			}
		})
	}
}

// A record that is too large takes no memory here, nor one that the server itself
// cannot put together: more than a gigabyte as JSON.
func TestRead_ARecordThatIsTooLargeTakesNoMemory(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	pool, s := sourceOn(t, bookingsSQL+`
		INSERT INTO app.bookings (note) VALUES ('first'), (repeat('x', 100000000));
		INSERT INTO app.bookings (note) VALUES (repeat(E'\x01', 180000000)), ('last'); -- which JSON writes in six bytes each`, Config{})
	s.waits.read.Answer = 5 * patience // it takes the server its time
	later(t, pool)
	var records []processor.Record
	var after cursor.Position
	for until := time.Now().Add(5 * patience); len(records) < 4; {
		require.True(t, time.Now().Before(until), "read %v alone", ids(records))
		records = append(records, read(t, s, after, 500).Records...)
		after = last(records)
	}
	require.Equal(t, []string{"1", "2", "3", "4"}, ids(records))
	require.NoError(t, records[0].Fault)
	require.ErrorContains(t, records[1].Fault, "it has 1000000")
	require.ErrorContains(t, records[2].Fault, "the server cannot put it together")
	require.NoError(t, records[3].Fault)
	require.Less(t, peak(), 64*mebibyte)
}

// What is large in a record without its payload counts as well.
func TestRead_BytesOfKeyTypeAndIDCountAgainstMaxBytes(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string]Columns{
		"key":  {Key: "note", Payload: "n"},
		"type": {Type: "note", Payload: "n"},
		"id":   {ID: "long", Payload: "n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`ALTER TABLE app.bookings ADD n int DEFAULT 1, ADD long text COLLATE "C" NOT NULL DEFAULT '';
				INSERT INTO app.bookings (note, long) SELECT repeat('x', 1000), repeat('x', 1000) || i FROM generate_series(1, 50) i;
				CREATE UNIQUE INDEX ON app.bookings (created_at, long)`, Config{MaxBytes: 10_000, Columns: columns})
			later(t, pool)
			var after cursor.Position
			for range 4 {
				page := read(t, s, after, 500)
				require.LessOrEqual(t, len(page.Records), 10)
				require.NotEmpty(t, page.Records)
				after = last(page.Records)
			}
		})
	}
}
