package processor_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Behind an address that moves to the new primary, connections that still lead to
// the old one must not be used for ever.
func TestRun_ADemotedPrimaryCostsEveryConnection(t *testing.T) {
	t.Parallel()
	primary := pgtest.Server(t, nil)
	standby := pgtest.Standby(t, primary)
	onPrimary := databaseOn(t, primary.URL())
	insert(t, onPrimary, 3)
	store := store(t, onPrimary)
	_, err := store.Create(t.Context(), "sms", "")
	require.NoError(t, err)
	eventually(t, "the standby has it all", func() bool {
		pool := pgtest.Pool(t, standby.URL(), pgtest.PoolConfig{})
		var n int
		return pool.QueryRow(t.Context(), `SELECT count(*) FROM dispatch.cursor, dispatch.bookings`).Scan(&n) == nil && n == 3
	})

	address, link := pgtest.Proxy(t, standby.URL())
	sink, log := &receiver{}, &logbook{}
	stop := start(t, process(t, pgtest.Pool(t, address, pgtest.PoolConfig{}), processor.Each(sink), func(c *processor.Config) {
		c.Logger = log.logger()
	}))
	eventually(t, "the worker says why", func() bool { return log.has("the server is a standby") })
	link.Retarget(host(t, primary.URL()))
	eventually(t, "it finds the primary", func() bool { return sink.calls() == 3 })
	require.NoError(t, stop())
}

func host(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return net.JoinHostPort(u.Hostname(), u.Port())
}
