package pgurl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

// urls say more and less.
var urls = []string{
	"postgres://u@h", "postgres://u@h/", "postgresql://u:p@h:6/d", "postgres://u@h:/d", "postgres://u@:7/d", "postgres://u:@h/d",
	"postgres://u@h1,h2/d", "postgres://u@h1:5,h2:6/d?target_session_attrs=any", "postgres://u@[::1]/d", "postgres://u@[::1]:7,h/d",
	"postgres://u%40x:p%26q%3D%25=&@h/d%20e?sslmode=disable&connect_timeout=7", "postgres://h/d?user=u&password=p&port=8", "postgres://u@h/d?ssl=true",
	"postgres://u@h/d?application_name=a&search_path=x&options=-c%20jit%3Doff", "postgres:///d?host=/tmp&user=u", "postgres://u@/d",
	"postgres://u:a:b@h/d", "postgres://u@h?sslmode=require&sslsni=0",
	"user=u host=h", "user=u password='p q' host=h port=9 dbname=d sslmode=disable application_name=a", " host=h user=u\tconnect_timeout = 4",
}

// variables are all that the driver reads.
var variables = map[string]string{
	"PGHOST": "elsewhere", "PGPORT": "99", "PGDATABASE": "other", "PGUSER": "other", "PGPASSWORD": "theirs", "PGAPPNAME": "theirs",
	"PGCONNECT_TIMEOUT": "99", "PGSSLMODE": "require", "PGSSLKEY": "/none", "PGSSLCERT": "/none", "PGSSLCERTMODE": "require", "PGSSLSNI": "0",
	"PGSSLROOTCERT": "/none", "PGSSLPASSWORD": "theirs", "PGSSLNEGOTIATION": "direct", "PGTARGETSESSIONATTRS": "standby", "PGTZ": "UTC",
	"PGOPTIONS": "-c jit=off", "PGMINPROTOCOLVERSION": "3.2", "PGMAXPROTOCOLVERSION": "3.2", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none",
}

// said is how connections differ: functions are equal to none, and a TLS configuration has its own names.
func said(t testing.TB, parse func(string) (*pgx.ConnConfig, error), url string) map[string]any {
	t.Helper()
	c, err := parse(url)
	require.NoError(t, err, url)
	all := map[string]any{
		"user": c.User, "password": c.Password, "database": c.Database, "host": c.Host, "port": c.Port, "parameters": c.RuntimeParams,
		"timeout": c.ConnectTimeout, "negotiation": c.SSLNegotiation, "certmode": c.SSLCertMode, "min": c.MinProtocolVersion,
		"max": c.MaxProtocolVersion, "binding": c.ChannelBinding, "auth": c.RequireAuth, "attributes": c.ValidateConnect == nil, "TLS": c.TLSConfig != nil,
	}
	if c.TLSConfig != nil {
		all["name"], all["certificates"], all["roots"] = c.TLSConfig.ServerName, len(c.TLSConfig.Certificates), c.TLSConfig.RootCAs
	}
	var hosts []any
	for _, f := range c.Fallbacks {
		hosts = append(hosts, f.Host, f.Port, f.TLSConfig != nil)
	}
	all["fallbacks"] = hosts
	return all
}

// Not parallel: it sets variables.
func TestParseAlone_SaysWhatTheURLSaysAndTakesNothingOfTheEnvironment(t *testing.T) {
	for name := range variables {
		t.Setenv(name, "") // it is set back
		require.NoError(t, os.Unsetenv(name))
	}
	want := map[string]map[string]any{}
	for _, url := range urls {
		want[url] = said(t, pgx.ParseConfig, url)
		require.Equal(t, want[url], said(t, pgurl.ParseAlone, url), url)
	}
	check := func(of string) {
		for _, url := range urls {
			require.Equal(t, want[url], said(t, pgurl.ParseAlone, url), "%s: %s", of, url)
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
		check(name)
		require.NoError(t, os.Unsetenv(name))
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	t.Setenv("PGPASSFILE", write("pgpass", "*:*:*:*:theirs\n"))
	check("PGPASSFILE")
	t.Setenv("PGSERVICEFILE", write("services", "[s]\npassword=theirs\nuser=other\nsslmode=disable\nrole=other\nkrbspn=theirs\n"))
	t.Setenv("PGSERVICE", "s")
	check("PGSERVICE")
}

func TestParseAlone_AUserIsNamed(t *testing.T) {
	t.Setenv("PGUSER", "other")
	for _, url := range []string{"postgres://h/d", "postgres://:p@h/d", "postgres://h/d?user=", "host=h", "host=h user=''", ""} {
		_, err := pgurl.ParseAlone(url)
		require.ErrorContains(t, err, "names no user", url)
	}
	for _, url := range []string{"postgres://u@h/d?service=s", "service=s user=u", "postgres://u@h?sslmode=disable&servicefile=/x"} {
		_, err := pgurl.ParseAlone(url)
		require.ErrorContains(t, err, "names a service", url)
	}
	for _, url := range []string{"postgres://u@[::1/d", "postgres://u@[::1]7/d"} {
		_, err := pgurl.ParseAlone(url)
		require.Error(t, err, url)
	}
}

// As libpq: the file is for what it names.
func TestParseAlone_APasswordFileAtHomeServesTheServersThatItNames(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".pgpass"), []byte("h:5432:d:u:hers\n"), 0o600))
	for url, password := range map[string]string{"postgres://u@h/d": "hers", "postgres://u@other/d": "", "postgres://u:p@h/d": "p", "host=h user=u dbname=d": "hers"} {
		require.Equal(t, password, said(t, pgurl.ParseAlone, url)["password"], url)
	}
}
