package processor

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLog_NamesARecordOfTheFutureOnceItHasWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := newReporter(slog.New(slog.NewTextHandler(&log, nil)))
		count := func() int { return strings.Count(log.String(), "ahead of the database's clock") }
		wait := func(d, ahead time.Duration) {
			for began := time.Now(); time.Since(began) < d; time.Sleep(100 * time.Millisecond) {
				r.pass(state{is: StateWaiting, ahead: ahead}, nil)
			}
		}
		wait(9*time.Second, 3*time.Hour)
		require.Zero(t, count())
		wait(2*time.Second, 3*time.Hour)
		require.Equal(t, 1, count())
		require.Contains(t, log.String(), "ahead=3h0m0s")
		wait(2*time.Minute, 3*time.Hour)
		require.Equal(t, 3, count(), "once a minute")
		wait(5*time.Minute, time.Millisecond)
		require.Equal(t, 3, count(), "a record of this moment is no news")
	})
}
