package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Another role makes a table of the same name in a schema that comes earlier in the
// search_path, while the source reads.
func TestRead_AStrangersTableTakesNoPlace(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`CREATE SCHEMA early; INSERT INTO app.bookings (note) VALUES ('real 1')`)
	role, _ := user(t, admin)
	exec(t, admin, "GRANT USAGE ON SCHEMA early, app TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA app TO "+role)
	pool := login(t, admin, role, "early, app")
	s := bookings(t, pool, Config{Table: "bookings"})
	page := readAll(t, s, "", 10)
	require.Equal(t, []string{"real 1"}, notes(t, page))

	exec(t, admin, `CREATE TABLE early.bookings (LIKE app.bookings INCLUDING ALL); GRANT SELECT ON early.bookings TO `+role+`;
		INSERT INTO early.bookings (note) VALUES ('forged'); INSERT INTO app.bookings (note) VALUES ('real 2')`)
	s.mu.Lock()
	s.layout.inspected = time.Now().Add(-2 * inspectInterval)
	s.mu.Unlock()
	require.Equal(t, []string{"real 2"}, notes(t, readAll(t, s, last(page), 10)))
}
