package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A row that is inserted through a view gets the view's default, and one without any
// the default of its column's domain.
func TestRead_DefaultsOfViewsAndDomainsAreFenced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, into, problem string }{
		"a view": {bookingsSQL + `CREATE VIEW app.v AS SELECT * FROM app.bookings; ALTER VIEW app.v ALTER created_at SET DEFAULT now()`, "app.v",
			"column created_at of app.v defaults to now()"},
		"a view that renames, over a view": {bookingsSQL + `CREATE VIEW app.v AS SELECT note, id, created_at AS "at time" FROM app.bookings;
			CREATE VIEW app.w AS SELECT "at time" AS t, id, note FROM app.v; ALTER VIEW app.w ALTER t SET DEFAULT CURRENT_TIMESTAMP`, "app.w",
			"column created_at of app.w defaults to CURRENT_TIMESTAMP"},
		"a domain": {bookingsSQL + `CREATE DOMAIN app.stamp AS timestamptz DEFAULT statement_timestamp();
			ALTER TABLE app.bookings ALTER created_at DROP DEFAULT, ALTER created_at TYPE app.stamp`, "app.bookings",
			"column created_at of app.bookings defaults to statement_timestamp()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, c.sql)
			refused := bookings(t, readerPool(t, pool, "another"), Config{})
			require.Equal(t, Refuse, found(t, refused, c.problem).Severity)

			s := bookings(t, readerPool(t, pool, "stats"), Config{Latency: time.Millisecond})
			require.Empty(t, readAll(t, s, "", 10))
			late := begun(t, pool, `SELECT 1`)
			if c.into == "app.bookings" { // statement_timestamp() is that of the message
				late.do(`ROLLBACK`)
			}
			exec(t, pool, `INSERT INTO app.bookings (note, created_at) VALUES ('early', clock_timestamp())`)
			if c.into != "app.bookings" {
				holdsBack(t, s, "")
				late.do(`INSERT INTO ` + c.into + ` (note) VALUES ('late'); COMMIT`)
				require.Equal(t, []string{"late", "early"}, notes(t, readAll(t, s, "", 10)))
			}
			fixed(t, pool, bookings(t, pool, Config{}), c.problem)
			sound(t, bookings(t, readerPool(t, pool, "another"), Config{}))
		})
	}
}

// A view's default of another column, or of another table's column, stamps nothing.
func TestInspect_OtherDefaultsOfViewsAreLeftAlone(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`
		CREATE TABLE app.other (id int, created_at timestamptz);
		CREATE VIEW app.v AS SELECT b.id, b.note AS created_at, b.created_at AS at FROM app.bookings b;
		ALTER VIEW app.v ALTER created_at SET DEFAULT 'now';
		CREATE VIEW app.w AS SELECT o.created_at, b.id FROM app.bookings b JOIN app.other o ON o.id = b.id;
		ALTER VIEW app.w ALTER created_at SET DEFAULT now();`)
	sound(t, bookings(t, pool, Config{}))
	sound(t, bookings(t, pool, Config{Order: ID}))
	exec(t, pool, `ALTER VIEW app.v ALTER id SET DEFAULT nextval('app.bookings_id_seq')`)
	require.Equal(t, Refuse, found(t, bookings(t, pool, Config{Order: ID}), "column id of app.v defaults to nextval(").Severity)
}
