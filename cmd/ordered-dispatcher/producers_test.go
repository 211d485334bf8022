package main_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// producersPage is docs/producers.md.
func producersPage(t testing.TB) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/producers.md")
	require.NoError(t, err)
	return string(page)
}

// blockWith is the one block of a language that has a text in it.
func blockWith(t testing.TB, page, language, text string) string {
	t.Helper()
	var found []string
	for _, rest := range strings.Split(page, "```"+language+"\n")[1:] {
		if block, _, _ := strings.Cut(rest, "```"); strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	require.Len(t, found, 1, "blocks of %s with %q", language, text)
	return found[0]
}

// producer runs the program of docs/producers.md in one language, which books a seat.
type producer struct {
	language, file string
	book           func(t testing.TB, path string, address *pgx.ConnConfig, seat string) *exec.Cmd
}

var producers = []producer{
	{"python", "book.py", func(t testing.TB, path string, address *pgx.ConnConfig, seat string) *exec.Cmd {
		return with(exec.Command(brokertest.Python(t, "psycopg"), path, seat), "DATABASE_URL="+address.ConnString())
	}},
	{"js", "book.mjs", func(t testing.TB, path string, address *pgx.ConnConfig, seat string) *exec.Cmd {
		for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
			content, err := os.ReadFile(filepath.Join("testdata/node", name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), content, 0o600))
		}
		return with(brokertest.Node(t, path, seat), "DATABASE_URL="+address.ConnString())
	}},
	{"java", "Book.java", func(t testing.TB, path string, address *pgx.ConnConfig, seat string) *exec.Cmd {
		pgtest.Require(t, "javac") // java compiles the file, which takes a JDK
		login := url.Values{"user": {address.User}, "password": {address.Password}}
		return with(exec.Command(pgtest.Require(t, "java"), "-cp", "/usr/share/java/postgresql.jar", path, seat),
			fmt.Sprintf("JDBC_URL=jdbc:postgresql://%s:%d/%s?%s", address.Host, address.Port, address.Database, login.Encode()))
	}},
	{"php", "book.php", func(t testing.TB, path string, address *pgx.ConnConfig, seat string) *exec.Cmd {
		return with(exec.Command(pgtest.Require(t, "php"), path, seat), "PDO_DSN=pgsql:"+strings.Join([]string{
			"host=" + address.Host, "port=" + strconv.Itoa(int(address.Port)), "dbname=" + address.Database, "user=" + address.User, "password=" + address.Password}, ";"))
	}},
}

func with(cmd *exec.Cmd, env ...string) *exec.Cmd {
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// The role of the producer has no right but those that the page names. The seats of an outbox that refuses a record,
// and of a transaction that fails as it is committed, leave nothing behind.
func TestProducers_TheProgramsOfThePageWriteBothRowsOrNeither(t *testing.T) {
	t.Parallel()
	page := producersPage(t)
	for _, p := range producers {
		t.Run(p.language, func(t *testing.T) {
			t.Parallel()
			address, pool := pgtest.URL(t), pgtest.Database(t)
			must(t, address, "migrate", "up")
			execute(t, pool, blockWith(t, page, "sql", "CREATE TABLE public.bookings"))
			execute(t, pool, blockWith(t, page, "sql", "CREATE TABLE IF NOT EXISTS"))
			execute(t, pool, `ALTER TABLE public.bookings DROP CONSTRAINT bookings_seat_key, ADD UNIQUE (seat) DEFERRABLE INITIALLY DEFERRED;
				ALTER TABLE public.outbox ADD CONSTRAINT unlucky CHECK (payload ->> 'seat' <> '13A')`)
			role := pgtest.Role(t, pool, "producer_", "LOGIN PASSWORD 'of-the-producer'")
			execute(t, pool, "GRANT INSERT, SELECT (id) ON public.bookings TO "+role+"; GRANT INSERT ON public.outbox TO "+role)
			login, err := pgx.ParseConfig(pgtest.As(t, address, role, "of-the-producer"))
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), p.file)
			require.NoError(t, os.WriteFile(path, []byte(blockWith(t, page, p.language, "'booking.created'")), 0o600))

			for _, step := range []struct{ seat, fails string }{
				{"12A", ""}, {`"é'\`, ""}, {"13A", "unlucky"}, {"12A", "bookings_seat_key"}, {"12B", ""},
			} {
				out, err := p.book(t, path, login, step.seat).CombinedOutput()
				require.Equal(t, step.fails == "", err == nil, "%s: %s", step.seat, out)
				require.Contains(t, string(out), step.fails)
			}
			require.Equal(t, `12A, "é'\, 12B`, text(t, pool, "SELECT string_agg(seat, ', ' ORDER BY id) FROM public.bookings"))
			require.Equal(t, text(t, pool, "SELECT string_agg(concat_ws(' ', 'booking', id, id, 'booking.created', seat), ', ' ORDER BY id) FROM public.bookings"),
				text(t, pool, "SELECT string_agg(concat_ws(' ', aggregate_type, aggregate_id, key, type, payload ->> 'seat'), ', ' ORDER BY created_at, id) FROM public.outbox"))
			delivers(t, address, pool, page)
		})
	}
}

// delivers runs the process of the page, with another sink, until it has delivered the outbox.
func delivers(t testing.TB, address string, pool *pgxpool.Pool, page string) {
	t.Helper()
	config, _, _ := strings.Cut(blockWith(t, page, "yaml", "preset: outbox"), "    sink:")
	out := must(t, address, "run", "--drain", "-c", file(t, config+"    sink: {stdout: {}}\n"))
	require.Equal(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox"), strings.Count(out, `"type":"booking.created"`), out)
}
