package sql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// The target quotes the statement in what it refuses: to grants, to doctor, to a worker.
func TestRemote_KeepsSecretsOfTheStatement(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, func(c *sql.Config) {
		c.Statement, c.Secrets = "SELECT 'TOPSECRETkey'::uuid", []string{"TOPSECRETkey"}
	})
	_, err := s.Needs(t.Context())
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
	_, err = s.Lacking(t.Context())
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
	require.NotContains(t, fmt.Sprint(s.Check(t.Context())), "TOPSECRETkey")
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
}
