package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// idOrder is the same table for an order by id.
var idOrder = Config{Order: ID, KeysOnly: true}

// settled asks for the fence until every transaction that was open at the first question is over.
func settled(t *testing.T, s *Source) Bound {
	t.Helper()
	var b Bound
	await(t, "the fence is known", func() bool {
		var err error
		b, err = s.Fence(t.Context())
		require.NoError(t, err)
		return b.Before != "" && b.Holder == ""
	})
	return b
}

func TestFence_NoRowAppearsBeforeIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{"id": idOrder, "created_at": {KeysOnly: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL, c)
			first := settled(t, s)
			late := begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			later(t, pool)

			held, err := s.Fence(t.Context())
			require.NoError(t, err)
			require.Len(t, held.Writers, 1)
			require.Equal(t, held.Writers[0], held.Holder)
			require.Equal(t, CauseWriter, held.Held.Cause)
			require.GreaterOrEqual(t, held.Before, first.Before)
			seen := look(t, s, "", 10)
			require.Equal(t, []string{"2"}, ids(seen.Records), "a look shows what is committed")
			require.Less(t, held.Before, seen.Records[0].Position+"\x00", "the row that is there may be preceded")

			late.do("COMMIT")
			later(t, pool)
			over := settled(t, s)
			seen = look(t, s, "", 10)
			require.Equal(t, []string{"1", "2"}, ids(seen.Records))
			require.GreaterOrEqual(t, seen.Records[0].Position, held.Before)
			require.Less(t, seen.Records[1].Position, over.Before)
		})
	}
}

func look(t *testing.T, s *Source, after cursor.Position, limit int) Look {
	t.Helper()
	l, err := s.Look(t.Context(), after, limit)
	require.NoError(t, err)
	return l
}

// The first question knows no bound of the transactions that are open already.
func TestFence_OfAFirstQuestionBesideAWriterIsUnknown(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, idOrder)
	open := begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	for range 2 {
		b, err := s.Fence(t.Context())
		require.NoError(t, err)
		require.Empty(t, b.Before)
		require.NotEmpty(t, b.Holder)
	}
	open.do("ROLLBACK")
	require.NotEmpty(t, settled(t, s).Before)
}

func TestLook_IsInOrderAfterAPositionAndBounded(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (note) SELECT n FROM generate_series(1, 5) n`, Config{KeysOnly: true, Where: "id <> 4"})
	all := look(t, s, "", 10)
	require.Equal(t, []string{"1", "2", "3", "5"}, ids(all.Records))
	require.False(t, all.Records[3].CreatedAt.After(all.Clock))
	require.Equal(t, []string{"3"}, ids(look(t, s, all.Records[1].Position, 1).Records))
	for rows, want := range map[int]cursor.Position{0: all.Records[3].Position, 2: all.Records[1].Position, 4: "", 9: ""} {
		at, err := s.Tail(t.Context(), rows)
		require.NoError(t, err)
		require.Equal(t, want, at, "%d rows", rows)
	}
	exec(t, pool, `UPDATE app.bookings SET created_at = 'infinity' WHERE id = 5`)
	at, err := s.Tail(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, all.Records[2].Position, at, "a row that no read reaches is not the last one")
}

func TestFence_NeedsNoMoreThanSelect(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES`)
	name, pool := user(t, admin)
	exec(t, admin, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT (id, created_at, xmin) ON app.bookings TO %[1]s`, name))
	s := bookings(t, pool, Config{KeysOnly: true})
	settled(t, s)
	require.Len(t, look(t, s, "", 10).Records, 1)
}

// The time of the query distinguishes a session that works from one that was forgotten.
func TestWriters_HaveTheTimeOfTheirQuery(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{"clock_timestamp": bookingsSQL, "now": nowTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, sql, Config{})
			open := begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			open.do("SELECT 1")
			writers, err := s.Writers(t.Context())
			require.NoError(t, err)
			require.Len(t, writers, 1)
			require.True(t, writers[0].QueryStart.After(writers[0].Since), "%+v", writers[0])
		})
	}
}
