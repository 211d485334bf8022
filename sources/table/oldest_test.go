package table

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// visitsSQL is a table with ids that do not grow, and a time that gives no order by itself.
const visitsSQL = `CREATE SCHEMA app; CREATE TABLE app.bookings (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), at timestamp DEFAULT now());`

const sixDays = `INSERT INTO app.bookings (at) SELECT timestamp '2026-01-01' + n * interval '1 day' FROM generate_series(1, 6) n;`

// added adds the column of the order as DDL proposes, and returns what DDL warns of.
func added(t testing.TB, pool *pgxpool.Pool) []Finding {
	t.Helper()
	statements, findings, err := bookings(t, pool, Config{}).DDL(t.Context())
	require.NoError(t, err)
	for _, statement := range statements {
		exec(t, pool, statement)
	}
	return findings
}

// Rows that are there before the column of the order share one time, and random ids give them no order. DDL warns of it,
// and InspectOldest until the rows have their own times.
func TestInspectOldest_WarnsOfOldRowsThatHaveNoOrder(t *testing.T) {
	t.Parallel()
	pool := database(t, visitsSQL+sixDays)
	findings := added(t, pool)
	require.Len(t, findings, 1)
	require.Equal(t, Warn, findings[0].Severity)
	require.Contains(t, findings[0].Problem, "the rows that app.bookings holds get one time")

	s := bookings(t, pool, Config{})
	oldest, err := s.InspectOldest(t.Context())
	require.NoError(t, err)
	require.Len(t, oldest, 1)
	require.Equal(t, Warn, oldest[0].Severity)
	require.Contains(t, oldest[0].Problem, `the first rows of app.bookings, 6, have one "created_at"`)
	require.Equal(t, findings[0].Fix, oldest[0].Fix)

	_, statement, _ := strings.Cut(oldest[0].Fix, "first runs: ")
	statement, _, _ = strings.Cut(statement, ";")
	exec(t, pool, strings.Replace(statement, "the zone of its values", "UTC", 1))
	oldest, err = s.InspectOldest(t.Context())
	require.NoError(t, err)
	require.Empty(t, oldest)
	exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	later(t, pool)
	var days []string
	for _, r := range readAll(t, s, "", 10)[:6] {
		days = append(days, r.CreatedAt.UTC().Format("02"))
	}
	require.Equal(t, []string{"02", "03", "04", "05", "06", "07"}, days)
}

func TestInspectOldest_FindsNothingWhereRowsHaveAnOrder(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"no row before the column": visitsSQL,
		"ids that grow":            strings.Replace(visitsSQL, "uuid PRIMARY KEY DEFAULT gen_random_uuid()", "bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY", 1) + sixDays,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, sql)
			for _, f := range added(t, pool) {
				require.Equal(t, Note, f.Severity, f.Problem)
			}
			exec(t, pool, sixDays)
			oldest, err := bookings(t, pool, Config{}).InspectOldest(t.Context())
			require.NoError(t, err)
			require.Empty(t, oldest)
		})
	}
}
