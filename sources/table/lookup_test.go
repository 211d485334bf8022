package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLookup_FindsTheRecordsOfAValue: by id, and by key, the last ones first, in each order.
func TestLookup_FindsTheRecordsOfAValue(t *testing.T) {
	t.Parallel()
	for kind, of := range kindTables {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			of.config.Columns.Key = "created_at"
			_, s := sourceOn(t, of.sql, of.config)
			all := readAll(t, s, "", 100)
			for i, r := range all {
				found, err := s.ByID(t.Context(), r.ID, 5, 100)
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.Equal(t, r.Position, found[0].Position)
				require.Equal(t, r.CreatedAt, found[0].CreatedAt)
				first := i / 3 * 3
				found, err = s.ByKey(t.Context(), r.CreatedAt.Format(time.RFC3339Nano), 2, 100)
				require.NoError(t, err)
				require.Len(t, found, 2)
				require.Equal(t, []string{all[first+2].ID, all[first+1].ID}, []string{found[0].ID, found[1].ID})
			}
			for _, id := range []string{"x", "", "00000000-0000-0000-0000-000000000099", "99999999999999999999"} {
				found, err := s.ByID(t.Context(), id, 5, 100)
				require.NoError(t, err, id)
				require.Empty(t, found)
			}
			require.Len(t, readAll(t, s, "", 100), 12) // the source reads on
		})
	}
}

// A search without an index is bounded, and says what would help.
func TestLookup_WithoutAnIndexIsBounded(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, kindTables["at.int"].sql, Config{Columns: Columns{Key: "created_at"}, Where: "pg_sleep(1) IS NOT NULL"})
	s.waits.lookup = 100 * time.Millisecond
	_, err := s.ByKey(t.Context(), "2026-01-01 00:00:00Z", 5, 100)
	require.ErrorContains(t, err, `it was not found within 100ms: an index on "created_at" would lead to it at once`)
}

func TestLookup_OfWhatTheSourceDoesNotRead(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, kindTables["at.int"].sql, Config{Where: "id <> 3"})
	found, err := s.ByID(t.Context(), "3", 5, 100)
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = s.ByKey(t.Context(), "x", 5, 100)
	require.ErrorIs(t, err, ErrNoKey)
}

// A source that reads keys alone shows no contents, and needs no right to read them.
func TestLookup_OfKeysAlone(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, kindTables["at.int"].sql, Config{KeysOnly: true, Columns: Columns{Key: "created_at"}})
	found, err := s.ByID(t.Context(), "3", 5, 100)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.False(t, found[0].Withheld)
	require.Empty(t, found[0].Key)
	require.Nil(t, found[0].Payload)
}
