package table

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestParseName_ReadsNamesAsTheServerDoes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	for _, name := range []string{
		"bookings", "app.bookings", "APP.Bookings", `"App"."Bookings"`, `app."Two Words"`, `"with ""quotes"""`, `"dots.in.it".a`,
		"_a$1", "größe", "GRÖSSE", `"Größe"`, "表", `"'"`, `"a;b--c"`, strings.Repeat("a", 63), `"` + strings.Repeat("é", 31) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseName(name)
			require.NoError(t, err)
			require.Equal(t, pgtest.Value[[]string](t, pool, `SELECT parse_ident($1)`, name), got)
		})
	}
}

func TestParseName_RefusesWithTheReason(t *testing.T) {
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
	} {
		_, err := parseName(name)
		require.ErrorContains(t, err, reason, name)
	}
}

func TestParseName_TakesQuotedNamesLiterally(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.RuneFrom([]rune(`aZ_. ";é表'`)), 1, 12, maxNameBytes)
		want := rapid.SliceOfN(part, 1, 2).Draw(t, "parts")
		got, err := parseName(pgx.Identifier(want).Sanitize())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestNew_ReturnsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{
		Table:    "a.b.c",
		Order:    "name",
		Latency:  -1,
		MaxBytes: -1,
		Columns:  Columns{ID: "a.id", Key: "two words"},
	})
	for _, fault := range []string{
		"source: ", `order must be created_at or id, got "name"`, "latency must be between 1µs and 1m0s, got -1ns", "max_bytes must be at least 1, got -1",
		"table: name a.b.c has more than a schema and a name", `column "a.id": a column has no qualifier`, "column: name two words",
	} {
		require.ErrorContains(t, err, fault)
	}
	_, err = New(nil, Config{Table: "app." + strings.Repeat("b", 64)})
	require.ErrorContains(t, err, "has 64 bytes, and PostgreSQL keeps only 63: use the name as the catalog has it")
}
