package pgname_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestParse_ReadsNamesAsTheServerDoes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	for _, name := range []string{
		"bookings", "app.bookings", "APP.Bookings", `"App"."Bookings"`, `app."Two Words"`, `"with ""quotes"""`, `"dots.in.it".a`,
		"_a$1", "größe", "GRÖSSE", `"Größe"`, "表", `"'"`, `"a;b--c"`, strings.Repeat("a", 63), `"` + strings.Repeat("é", 31) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pgname.Parse(name)
			require.NoError(t, err)
			require.Equal(t, pgtest.Value[[]string](t, pool, `SELECT parse_ident($1)`, name), got)
		})
	}
}

func TestParse_RefusesWithTheReason(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{
		"":                             "the name is empty",
		".a":                           "a part is empty",
		"a.":                           "a part is empty",
		"a..b":                         "a part is empty",
		`""`:                           "a part is empty",
		`a.""`:                         "a part is empty",
		`"a`:                           "a double quote is not closed",
		`"a""`:                         "a double quote is not closed",
		`"a"b`:                         "a dot must follow a closing quote",
		"a.b.c":                        "more than a schema and a name",
		"two words":                    "' ' needs double quotes",
		"a-b":                          "'-' needs double quotes",
		`a"b`:                          `'"' needs double quotes`,
		"a;drop":                       "';' needs double quotes",
		strings.Repeat("a", 64):        "has 64 bytes, and PostgreSQL keeps only 63",
		strings.Repeat("é", 32):        "has 64 bytes",
		"a." + strings.Repeat("é", 32): "has 64 bytes",
		"a\x00":                        "'\\x00' needs double quotes",
		"\"a\x00\"":                    "has a NUL",
		"\"\xff\"":                     "is not UTF-8",
	} {
		_, err := pgname.Parse(name)
		require.ErrorContains(t, err, reason, name)
	}
}

func TestParse_TakesQuotedNamesLiterally(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.RuneFrom([]rune(`aZ_. ";é表'`)), 1, 12, pgname.MaxBytes)
		want := rapid.SliceOfN(part, 1, 2).Draw(t, "parts")
		got, err := pgname.Parse(pgx.Identifier(want).Sanitize())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
