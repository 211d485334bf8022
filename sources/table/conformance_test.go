package table

import (
	"fmt"
	"testing"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/sourcetest"
)

func TestSource_KeepsThePromisesOfEverySource(t *testing.T) {
	t.Parallel()
	const uuid = `'00000000-0000-4000-8000-' || lpad(nextval('app.s')::text, 12, '0')`
	for name, c := range map[string]struct {
		idType, idDefault, createdAt string
		config                       Config
	}{
		"created_at, bigint":   {"bigint", "nextval('app.s')", "clock_timestamp()", Config{}},
		"created_at, integer":  {"integer", "nextval('app.s')", "clock_timestamp()", Config{}},
		"created_at, smallint": {"smallint", "nextval('app.s')", "clock_timestamp()", Config{}},
		"created_at, uuid":     {"uuid", "(" + uuid + ")::uuid", "clock_timestamp()", Config{}},
		"created_at, text":     {`text COLLATE "C"`, uuid, "clock_timestamp()", Config{}},
		"created_at, varchar":  {"varchar(40)", uuid, "clock_timestamp()", Config{}},
		"now, bigint":          {"bigint", "nextval('app.s')", "now()", Config{Latency: time.Millisecond}},
		"id, bigint":           {"bigint", "nextval('app.s')", "clock_timestamp()", Config{Order: ID}},
		"id, integer":          {"integer", "nextval('app.s')", "clock_timestamp()", Config{Order: ID}},
		"small pages":          {"bigint", "nextval('app.s')", "clock_timestamp()", Config{MaxBytes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, func(t testing.TB) sourcetest.Fixture {
				pool := database(t, fmt.Sprintf(`CREATE SCHEMA app; CREATE SEQUENCE app.s;
					CREATE TABLE app.bookings (id %s PRIMARY KEY DEFAULT %s, created_at timestamptz NOT NULL DEFAULT %s)`, c.idType, c.idDefault, c.createdAt))
				late := newSession(t, pool)
				insert := func(n int) []string {
					return pgtest.Value[[]string](t, pool, `WITH inserted AS (INSERT INTO app.bookings SELECT FROM generate_series(1, $1::int) RETURNING id)
						SELECT coalesce(array_agg(id::text), '{}') FROM inserted`, n)
				}
				return sourcetest.Fixture{
					Source: bookings(t, pool, c.config),
					Add:    insert,
					Begin: func() func() string {
						late.do(`BEGIN`)
						id := pgtest.Value[string](t, late, `INSERT INTO app.bookings DEFAULT VALUES RETURNING id::text`)
						return func() string {
							late.do(`COMMIT`)
							return id
						}
					},
				}
			})
		})
	}
}
