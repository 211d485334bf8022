package table

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// tail is the position of the last record but n.
func (s *Source) tail(t testing.TB, n int) cursor.Position {
	t.Helper()
	var at time.Time
	var id string
	sql := fmt.Sprintf(`SELECT created_at, id::text FROM app.bookings b ORDER BY created_at DESC, b.id DESC OFFSET %d LIMIT 1`, n)
	require.NoError(t, s.pool.QueryRow(t.Context(), sql).Scan(&at, &id))
	p, err := s.mustLayout(t).kind.position(key{at: at.UnixMicro(), id: id})
	require.NoError(t, err)
	return p
}

// A read at the tail costs the height of the index and what it returns, whatever
// stands before the cursor.
func TestRead_CostAtTheTailIsFlat(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{{}, {Order: ID}} {
		var blocks []int
		for _, rows := range []int{10_000, 300_000} {
			t.Run(fmt.Sprintf("%s %d rows", config.withDefaults().Order, rows), func(t *testing.T) {
				_, s := sourceOn(t, filled(rows, "bigint", "i", "")+fmt.Sprintf(`
					CREATE SEQUENCE app.s; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s');
					SELECT setval('app.s', %d); CREATE UNIQUE INDEX ON app.bookings (id)`, rows), config)
				after := cursor.Position(fmt.Sprintf("int:%020d", rows-10))
				if config.Order != ID {
					after = s.tail(t, 10)
				}
				plan := explained(t, s, after, 500, "read")
				require.EqualValues(t, 10, plan.Rows)
				blocks = append(blocks, plan.Hit+plan.Read)
			})
		}
		require.InDelta(t, blocks[0], blocks[1], 3, "blocks")
	}
}

// BenchmarkRead_AtTheTail: go test -bench AtTheTail -run '^$' ./sources/table
func BenchmarkRead_AtTheTail(b *testing.B) {
	for _, rows := range []int{10_000, 1_000_000, 5_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			pool := database(b, filled(rows, "bigint", "i", ""))
			s := bookings(b, pool, Config{})
			for name, n := range map[string]int{"idle": 0, "ten": 10} {
				after := s.tail(b, n)
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						page, err := s.Read(b.Context(), after, 500)
						require.NoError(b, err)
						require.Len(b, page.Records, n)
					}
				})
			}
		})
	}
}

// What a read allocates for each record is its payload and its text, not the room
// of the page: that is used again, and holds on to no payload meanwhile.
func TestRecycle_RoomIsUsedAgainAndItsRecordsLiveOn(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, filled(2_000, "bigint", "i", ""), Config{})
	first, err := s.Read(t.Context(), "", 1_000)
	require.NoError(t, err)
	require.Len(t, first.Records, 1_000)
	kept := slices.Clone(first.Records)
	last := kept[len(kept)-1]
	want := string(last.Payload)

	s.Recycle(first.Records)
	require.Zero(t, first.Records[0], "a payload is kept alive")
	second, err := s.Read(t.Context(), last.Position, 1_000)
	require.NoError(t, err)
	require.Len(t, second.Records, 1_000)
	require.Same(t, &first.Records[0], &second.Records[0])

	require.Equal(t, want, string(last.Payload))
	require.Less(t, last.Position, second.Records[0].Position)
	third, err := s.Read(t.Context(), last.Position, 1_000)
	require.NoError(t, err)
	require.Equal(t, second.Records, third.Records, "a page that was not given back is nobody else's")
}
