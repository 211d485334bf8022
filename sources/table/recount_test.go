package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestKeysMayRepeat_WhereThatIsNotKnown: a position of another order, and transactions of another database.
func TestKeysMayRepeat_WhereThatIsNotKnown(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigserial PRIMARY KEY); INSERT INTO app.bookings DEFAULT VALUES`, Config{Order: ID, KeysOnly: true})
	one, err := kindInt.position(key{id: "1"})
	require.NoError(t, err)
	ofTime, err := kindAtInt.position(key{at: 7, id: "1"})
	require.NoError(t, err)
	horizon := pgtest.Value[string](t, pool, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text`)
	for _, c := range []struct {
		at      cursor.Position
		horizon string
		want    bool
	}{{one, horizon, false}, {"", horizon, false}, {one, "", true}, {ofTime, horizon, true}, {one, "3", true}} {
		repeat, err := s.KeysMayRepeat(t.Context(), c.at, c.horizon)
		require.NoError(t, err)
		require.Equal(t, c.want, repeat, "%+v", c)
	}
}
