package table

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeld_SaysForHowLongAndByWhat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table string
		order Order
		begin string
		end   string
		cause Cause
	}{
		"a writer":                     {bookingsSQL, CreatedAt, `BEGIN; INSERT INTO app.bookings DEFAULT VALUES`, `COMMIT`, CauseWriter},
		"a writer, by id":              {bookingsSQL, ID, `BEGIN; INSERT INTO app.bookings DEFAULT VALUES`, `COMMIT`, CauseWriter},
		"any transaction, with now()":  {nowTable, CreatedAt, `BEGIN; SELECT 1`, `ROLLBACK`, CauseTransaction},
		"a prepared transaction":       {bookingsSQL, CreatedAt, `BEGIN; INSERT INTO app.bookings DEFAULT VALUES; PREPARE TRANSACTION $gid`, `ROLLBACK PREPARED $gid`, CausePrepared},
		"a prepared one, with now()":   {nowTable, CreatedAt, `BEGIN; INSERT INTO app.bookings DEFAULT VALUES; PREPARE TRANSACTION $gid`, `ROLLBACK PREPARED $gid`, CausePrepared},
		"a prepared transaction by id": {bookingsSQL, ID, `BEGIN; INSERT INTO app.bookings DEFAULT VALUES; PREPARE TRANSACTION $gid`, `ROLLBACK PREPARED $gid`, CausePrepared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gid := strings.NewReplacer("$gid", literal("held "+rand.Text()))
			pool, s := sourceOn(t, c.table, Config{Order: c.order})
			require.Empty(t, readAll(t, s, "", 10))
			holder := newSession(t, pool)
			holder.do(gid.Replace(c.begin))
			exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			read(t, s, "", 10)
			later(t, pool)
			read(t, s, "", 10)
			held := s.Held()
			require.Equal(t, c.cause, held.Cause)
			require.GreaterOrEqual(t, held.Lag, 20*time.Millisecond)
			require.Less(t, held.Lag, patience)

			holder.do(gid.Replace(c.end))
			await(t, "nothing holds it", func() bool {
				read(t, s, "", 10)
				return s.Held() == Held{}
			})
		})
	}
}

// A writer that was there before the first read has no bound, which is no reason
// to call its lag endless.
func TestHeld_CountsFromTheFirstReadForAWriterThatWasThere(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	holder := begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	s := bookings(t, pool, Config{})
	require.Zero(t, s.Held(), "nothing is known before the first read")
	read(t, s, "", 10)
	later(t, pool)
	read(t, s, "", 10)
	held := s.Held()
	require.Equal(t, CauseWriter, held.Cause)
	require.GreaterOrEqual(t, held.Lag, 20*time.Millisecond)
	require.Less(t, held.Lag, patience)
	holder.do(`COMMIT`)
}
