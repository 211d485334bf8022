package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// A message of a target is refused by its length, before a byte of it is kept.
func TestRemote_ATargetThatSaysTooMuchIsNotHeardOut(t *testing.T) {
	t.Parallel()
	for where, at := range map[string]tcptest.Moment{"at once": tcptest.Greeting, "at the login": tcptest.Login, "in an answer": tcptest.Statement} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			remote := sinktest.Made(t, sql.NewRemote, sql.Config{
				URL:        "postgres://u@" + tcptest.Postgres(t, at, tcptest.Long(5<<20)) + "/d?sslmode=disable",
				Statements: []string{"SELECT 1"}, Timeout: time.Minute,
			})
			_, err := remote.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "EOF", "the message was read to its end")
			require.Less(t, len(err.Error()), 1000)
		})
	}
}
