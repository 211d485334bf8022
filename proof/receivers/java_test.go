package receivers

import (
	"archive/zip"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// javaCopy is a copy of the receiver, packaged, with the jars that it and its tests need in target/lib.
var javaCopy = sync.OnceValues(func() (string, error) {
	return prepared("java", exec.Command("mvn", "--quiet", "--batch-mode", "-DskipTests", "package",
		"dependency:copy-dependencies", "-DoutputDirectory=target/lib"))
})

func java(t *testing.T) (dir string) {
	t.Helper()
	pgtest.Require(t, "javac")
	pgtest.Require(t, "mvn")
	dir, err := javaCopy()
	require.NoError(t, err)
	return dir
}

// javaReceiver runs the packaged jar.
func javaReceiver(t *testing.T) []string {
	dir := java(t)
	jars := []string{javaJar(t, dir), filepath.Join(dir, "target", "test-classes"), filepath.Join(dir, "target", "lib", "*")}
	return []string{jdbc(t), pgtest.Require(t, "java"), "-Xmx128m", "-cp", strings.Join(jars, ":"), "io.github.ordereddispatcher.inbox.Bookings"}
}

// javaJar is the jar, whose name has its version.
func javaJar(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "target", "ordered-inbox-*.jar"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func TestJava_IsPackagedWithItsTablesAndItsLicense(t *testing.T) {
	t.Parallel()
	jar, err := zip.OpenReader(javaJar(t, java(t)))
	require.NoError(t, err)
	defer jar.Close()
	for _, name := range []string{"META-INF/LICENSE", "io/github/ordereddispatcher/inbox/tables.sql"} {
		file, err := jar.Open(name)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
}

func TestJava_PassesItsTests(t *testing.T) {
	t.Parallel()
	run(t, java(t), "env", jdbc(t), "mvn", "--batch-mode", "--no-transfer-progress", "test")
}

// jdbc is the variable with the address of the test's database, as JDBC writes it.
func jdbc(t *testing.T) string {
	t.Helper()
	c, err := pgx.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	login := url.Values{"user": {c.User}, "password": {c.Password}}
	return fmt.Sprintf("JDBC_URL=jdbc:postgresql://%s:%d/%s?%s", c.Host, c.Port, url.PathEscape(c.Database), login.Encode())
}
