package sql_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// TestRemote_ASilentHostLeavesTimeForTheNext: a primary that hangs takes connections, and
// answers none.
func TestRemote_ASilentHostLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	silent, err := url.Parse(r.url)
	require.NoError(t, err)
	both, err := url.Parse(r.address)
	require.NoError(t, err)
	both.Host = silent.Host + "," + both.Host
	r.link.Stall()
	require.NoError(t, r.sink(t, func(c *sql.Config) { c.URL = both.String() }).Check(t.Context()))
}
