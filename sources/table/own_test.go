package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestFence_OfNowLeavesOutOurOwnThatWriteOnlyTheCursor: else a delivery, or an
// operator who waits for one, would hold up every process of the database.
func TestFence_OfNowLeavesOutOurOwnThatWriteOnlyTheCursor(t *testing.T) {
	t.Parallel()
	for application, counts := range map[string]bool{
		cursor.ApplicationLease + "sms":    false,
		cursor.ApplicationOperator + "sms": false,
		cursor.ApplicationTx + "sms":       true,
		"psql":                             true,
	} {
		t.Run(application, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, nowTable, Config{Latency: time.Microsecond})
			other := begun(t, pool, "")
			other.do(`SELECT set_config('application_name', $1, true), pg_current_xact_id()`, application)
			exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			writers, err := s.Writers(t.Context())
			require.NoError(t, err)
			require.Equal(t, counts, len(writers) == 1)
			if counts {
				holdsBack(t, s, "")
				return
			}
			await(t, "the record is read", func() bool { return len(read(t, s, "", 10).Records) == 1 })
		})
	}
}
