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
	require.ErrorContains(t, pgurl.CheckParameters(map[string]string{"statement_timeot": "1"}), `"statement_timeot", which the driver does not know: did you mean statement_timeout?`)
	err := pgurl.CheckParameters(map[string]string{"s3cretpw": "1"})
	require.ErrorContains(t, err, "set it with ALTER ROLE")
	require.NotContains(t, err.Error(), "s3cretpw")
}

// The driver takes a part of a password that is not encoded for the host or the database, and its errors name those.
func TestCheckScheme_RefusesAPasswordThatIsNotEncoded(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"postgres://u:s3cret@pw@127.0.0.1:5432/x", "postgresql://u:12/s3cret@127.0.0.1/x", "postgres://u:s3@cret/pw@h/x"} {
		for _, err := range []error{pgurl.CheckScheme(database), alone(database)} {
			require.EqualError(t, err, "the connection string cannot be read: "+pgurl.HowToConnect)
		}
	}
	for _, database := range []string{"postgres://u:s3cret%40pw@h1,h2:5432/x?options=a@b", "postgres://h/x", "postgres:///x?host=/run/a@b", "host=h password=s3@cret"} {
		require.NoError(t, pgurl.CheckScheme(database))
	}
}

func alone(database string) error {
	_, err := pgurl.ParseAlone(database)
	return err
}
