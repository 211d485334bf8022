package pgurl_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

// The driver would read a device, or wait for a pipe, without an end.
func TestCheckFiles_RefusesWhatTheDriverWouldReadWithoutAnEnd(t *testing.T) {
	t.Parallel()
	pipe, plain := filepath.Join(t.TempDir(), "it's a pipe"), filepath.Join(t.TempDir(), "plain")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for _, setting := range []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"} {
		for _, path := range []string{"/dev/zero", pipe} {
			for _, connection := range []string{
				"postgres://a:p@h/x?sslmode=verify-full&" + setting + "=" + url.PathEscape(path),
				fmt.Sprintf("postgresql://a@h/x?%%%02x%s=%s", setting[0], setting[1:], url.PathEscape(path)),
				"host=h password='a b=c' " + setting + " = '" + strings.ReplaceAll(path, "'", `\'`) + "' sslmode=verify-full",
				"password=x=" + setting + "=/none " + setting + "=" + strings.NewReplacer("'", `\'`, " ", `\ `).Replace(path),
			} {
				err := pgurl.CheckFiles(connection)
				require.ErrorIs(t, err, bounded.ErrNoFile, connection)
				require.ErrorContains(t, err, setting)
				require.NotContains(t, err.Error(), path)
			}
		}
		for _, path := range []string{plain, "/nowhere", "/dev/null", ""} {
			require.NoError(t, pgurl.CheckFiles("postgres://a@h/x?"+setting+"="+path))
			require.NoError(t, pgurl.CheckFiles("host=h password='"+setting+"=/dev/zero' "+setting+"='"+path+"'"))
		}
	}
	require.NoError(t, pgurl.CheckFiles("host=h sslrootcert=system"))
}

func TestMissingFile_NamesTheSettingAndNotThePath(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"sslrootcert", "sslcert", "sslkey"} {
		for _, connection := range []string{"postgres://a:p@h/x?sslmode=verify-full&" + setting + "=/nowhere/at-all", "host=h user=a sslmode=verify-full " + setting + "=/nowhere/at-all"} {
			require.EqualError(t, pgurl.MissingFile(connection), "the file that "+setting+" of the connection string names is not there: name the right one")
			_, err := pgurl.ParseAlone(connection)
			require.EqualError(t, err, pgurl.MissingFile(connection).Error())
		}
	}
	require.NoError(t, pgurl.MissingFile("host=h sslrootcert=system passfile=/nowhere sslkey="))
}

// Not parallel: it changes the environment.
func TestCheckFiles_KnowsThoseOfTheEnvironmentAndAtHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	require.NoError(t, pgurl.CheckFiles("host=h"))
	require.NoError(t, syscall.Mkfifo(filepath.Join(home, ".pgpass"), 0o600))
	require.ErrorContains(t, pgurl.CheckFiles("host=h"), "passfile")
	t.Setenv("PGPASSFILE", "/dev/null")
	require.NoError(t, pgurl.CheckFiles("host=h"))
	t.Setenv("PGSSLROOTCERT", "/dev/zero")
	require.ErrorContains(t, pgurl.CheckFiles("host=h"), "sslrootcert")
	require.NoError(t, pgurl.CheckFiles("host=h sslrootcert=/nowhere"), "the connection string has the last word")
}
