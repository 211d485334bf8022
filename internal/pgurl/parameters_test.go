package pgurl_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

func TestLowered_OfTwoSpellingsOneIsLeft(t *testing.T) {
	t.Parallel()
	given := map[string]string{"Client_Encoding": "LATIN1", "client_encoding": "UTF8", "TimeZone": "UTC"}
	require.Equal(t, map[string]string{"client_encoding": "UTF8", "timezone": "UTC"}, pgurl.Lowered(given))
}

// The driver takes a URL with a slip in its beginning for settings, and its beginning for the name of one.
func TestCheckParameters_QuotesNoURLThatIsNone(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"postgres:s3cretpw@127.0.0.1:5432/postgres?sslmode=disable", "postgres//app:s3cretpw@127.0.0.1/postgres?sslmode=disable"} {
		config, err := pgconn.ParseConfig(database)
		require.NoError(t, err)
		err = pgurl.CheckParameters(config.RuntimeParams)
		require.ErrorContains(t, err, pgurl.HowToConnect)
		require.NotContains(t, err.Error(), "s3cretpw")
	}
	require.ErrorContains(t, pgurl.CheckParameters(map[string]string{"statement_timeot": "1"}), `"statement_timeot"`)
}
