package daemon_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The keys are no JSON, so the server converts them: to bytes that are not UTF-8, or not at all.
func TestDrain_ARoleOfAnotherEncodingDeliversUTF8(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `INSERT INTO public.bookings (customer) VALUES ('é'), ('€')`)
	exec(t, pool, `ALTER DATABASE `+pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()+` SET client_encoding = 'LATIN1'`)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings, columns: {key: customer}}, sink: {stdout: {}}}\n")
	var out bytes.Buffer
	require.NoError(t, daemon.Run(t.Context(), daemon.RunConfig{Config: config, Drain: true, Stdout: &out, Logger: slog.New(slog.DiscardHandler)}))
	require.Contains(t, out.String(), `"key":"é"`)
	require.Contains(t, out.String(), `"key":"€"`)
}
