package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// kinds are a table for each kind of position, with ties in created_at.
var kindTables = map[string]struct {
	sql    string
	config Config
}{
	"at.int": {bookingsSQL + `INSERT INTO app.bookings (created_at) SELECT '2026-01-01'::timestamptz + i / 3 * interval '1 second' FROM generate_series(0, 11) i`, Config{}},
	"at.uuid": {`CREATE SCHEMA app;
		CREATE TABLE app.bookings (id uuid PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE UNIQUE INDEX ON app.bookings (created_at, id);
		INSERT INTO app.bookings SELECT lpad(to_hex(i), 32, '0')::uuid, '2026-01-01'::timestamptz + i / 3 * interval '1 second' FROM generate_series(0, 11) i`, Config{}},
	"at.text": {`CREATE SCHEMA app;
		CREATE TABLE app.bookings (id text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE UNIQUE INDEX ON app.bookings (created_at, id COLLATE "C");
		INSERT INTO app.bookings SELECT chr(75 - i) || 'é/', '2026-01-01'::timestamptz + i / 3 * interval '1 second' FROM generate_series(0, 11) i`, Config{}},
	"int": {bookingsSQL + `
		INSERT INTO app.bookings (created_at) SELECT '2026-01-01'::timestamptz + i / 3 * interval '1 second' FROM generate_series(0, 11) i;
		CREATE INDEX ON app.bookings (created_at)`, Config{Order: ID, Columns: Columns{CreatedAt: "created_at"}}},
}

// TestFind_LeadsToTheRecordAsked: what is read behind a position that was found
// begins with the record of that id, or with the first one of that time.
func TestFind_LeadsToTheRecordAsked(t *testing.T) {
	t.Parallel()
	for kind, of := range kindTables {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, of.sql, of.config)
			all := readAll(t, s, "", 100)
			require.Len(t, all, 12)
			for i, r := range all {
				position, err := s.Before(t.Context(), r.ID)
				require.NoError(t, err)
				require.Equal(t, ids(all[i:]), ids(readAll(t, s, position, 100)))

				first := i / 3 * 3
				for _, at := range []time.Time{r.CreatedAt, r.CreatedAt.Add(-time.Millisecond), r.CreatedAt.Add(-time.Nanosecond)} {
					position, err = s.At(t.Context(), at)
					require.NoError(t, err)
					require.Equal(t, ids(all[first:]), ids(readAll(t, s, position, 100)), at)
				}
				for j := range all {
					span, err := s.Between(t.Context(), r.Position, all[j].Position, 100)
					require.NoError(t, err)
					want := all[i+1 : max(i+1, j+1)]
					require.Equal(t, ids(want), ids(span.Records))
					require.EqualValues(t, len(want), span.Total)
					for n, found := range span.Records {
						require.Equal(t, want[n].Position, found.Position)
						require.Equal(t, want[n].CreatedAt, found.CreatedAt)
						require.Nil(t, found.Payload)
					}
				}
			}
			position, err := s.At(t.Context(), all[11].CreatedAt.Add(time.Microsecond))
			require.NoError(t, err)
			require.Empty(t, readAll(t, s, position, 100))
			exec(t, pool, map[bool]string{
				true:  `INSERT INTO app.bookings DEFAULT VALUES`,
				false: `INSERT INTO app.bookings (id) VALUES ('ffffffff-ffff-ffff-ffff-ffffffffffff')`}[strings.HasSuffix(kind, "int")])
			require.Len(t, readSome(t, s, position, 1), 1, "what comes now follows it")
		})
	}
}

func TestAt_AnEmptyIDIsNotPassedOver(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, kindTables["at.text"].sql+`;
		INSERT INTO app.bookings VALUES ('', '2026-01-01'::timestamptz + interval '2 seconds')`, Config{})
	all := readAll(t, s, "", 100)
	require.Equal(t, "", all[6].ID)
	for i, r := range all {
		position, err := s.At(t.Context(), r.CreatedAt)
		require.NoError(t, err)
		first := slices.IndexFunc(all[:i+1], func(one processor.Record) bool { return one.CreatedAt.Equal(r.CreatedAt) })
		require.Equal(t, ids(all[first:]), ids(readAll(t, s, position, 100)))
	}
}

func TestBack_StepsOverRows(t *testing.T) {
	t.Parallel()
	for kind, of := range kindTables {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := bookings(t, database(t, of.sql), of.config)
			all := readAll(t, s, "", 100)
			for i, r := range all {
				for rows := 1; rows <= len(all)+1; rows++ {
					want := cursor.Position("")
					if i >= rows {
						want = all[i-rows].Position
					}
					position, err := s.Back(t.Context(), r.Position, rows)
					require.NoError(t, err)
					require.Equal(t, want, position)
				}
			}
		})
	}
}

func TestBetween_CountsMoreThanItLists(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+fmt.Sprintf(`INSERT INTO app.bookings (note) SELECT i %% 2 FROM generate_series(1, %d) i`, MaxLagRecords+10), Config{})
	end := s.mustEnd(t)
	span, err := s.Between(t.Context(), "", end, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, ids(span.Records))
	require.EqualValues(t, MaxLagRecords, span.Total)
	span, err = bookings(t, pool, Config{Where: "note = '0' -- even"}).Between(t.Context(), "", end, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"2", "4"}, ids(span.Records))
	require.EqualValues(t, MaxLagRecords/2+5, span.Total)
	_, err = s.Between(t.Context(), "", "int:00000000000000000008", 3)
	require.ErrorContains(t, err, "does not belong to this source")
}

func TestFind_RefusesWhatIsNotOneRecord(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, `CREATE SCHEMA app;
		CREATE TABLE app.bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
		CREATE UNIQUE INDEX ON app.bookings (created_at, id);
		INSERT INTO app.bookings (id, note) VALUES (1, 'a'), (2, 'b');
		INSERT INTO app.bookings (id, note) VALUES (1, 'b')`, Config{})
	_, err := s.Before(t.Context(), "1")
	require.ErrorIs(t, err, ErrAmbiguous)
	_, err = s.Before(t.Context(), "3")
	require.ErrorIs(t, err, ErrNoRecord)
	_, err = s.Before(t.Context(), "one")
	require.ErrorIs(t, err, ErrNoRecord)
	require.ErrorContains(t, err, "is not a bigint")
	_, err = s.Before(t.Context(), "99999999999999999999")
	require.ErrorIs(t, err, ErrNoRecord)

	// source.where tells the two apart, and leaves others out.
	b := bookings(t, pool, Config{Where: "note = 'b'"})
	position, err := b.Before(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, ids(readAll(t, b, position, 10)))
	_, err = bookings(t, pool, Config{Where: "note = 'a'"}).Before(t.Context(), "2")
	require.ErrorIs(t, err, ErrNoRecord)
	require.ErrorContains(t, err, "source.where")
}

func TestAt_WithoutATimeColumnSaysSo(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+"ALTER TABLE app.bookings RENAME COLUMN created_at TO made")
	_, err := bookings(t, pool, Config{Order: ID}).At(t.Context(), time.Now())
	require.ErrorIs(t, err, ErrNoTime)
	byID := bookings(t, pool, Config{Order: ID, Columns: Columns{CreatedAt: "made"}})
	position, err := byID.At(t.Context(), time.Now())
	require.NoError(t, err)
	require.Equal(t, cursor.Position(""), position, "there is no record at all")
}

// TestFind_FollowsTheIndex: what precedes a record, what stands between two, and
// a time cost no more on a large table.
func TestFind_FollowsTheIndex(t *testing.T) {
	t.Parallel()
	const many = `
		INSERT INTO app.bookings (created_at) SELECT '2026-01-01'::timestamptz + i * interval '1 second' FROM generate_series(1, 50000) i;
		ANALYZE app.bookings`
	for name, config := range map[string]Config{"created_at": {}, "id": {Order: ID, Columns: Columns{CreatedAt: "created_at"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := bookings(t, database(t, bookingsSQL+many), config)
			all := read(t, s, "", 100).Records
			require.NoError(t, s.ask(t.Context(), "explain", func(l *layout, ask asker) error {
				explained := func(sql string, args ...[]byte) ([][][]byte, error) {
					plan, err := ask("EXPLAIN "+sql, args...)
					for _, line := range plan {
						require.NotContains(t, string(line[0]), "Seq Scan", sql)
						require.NotContains(t, string(line[0]), "Sort", sql)
						require.NotContains(t, string(line[0]), "Filter", sql)
					}
					require.NoError(t, err)
					return ask(sql, args...)
				}
				_, err := l.before(config.withDefaults(), explained, "25000")
				require.NoError(t, err)
				_, err = l.span(config.withDefaults(), explained, all[10].Position, all[20].Position, 5)
				require.NoError(t, err)
				_, err = l.atTime(config.withDefaults(), explained, all[50].CreatedAt.UnixMicro())
				return err
			}))
		})
	}
}
