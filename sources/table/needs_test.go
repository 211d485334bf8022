package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

func TestNeeds_AreWhatTheReadIsCheckedFor(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`CREATE TABLE app.allowed (id bigint, until date);`)
	usage := privilege.Privilege{On: privilege.Schema, Name: `"app"`, Right: "USAGE"}
	reads := func(table string, columns ...string) privilege.Privilege {
		return privilege.Privilege{On: privilege.Table, Name: table, Right: "SELECT", Columns: columns}
	}
	sequence := privilege.Privilege{On: privilege.Sequence, Name: "app.bookings_id_seq", Right: "SELECT"}
	for name, c := range map[string]struct {
		config Config
		needed []privilege.Privilege
	}{
		"the whole row":        {Config{}, []privilege.Privilege{usage, reads(`"app"."bookings"`), sequence}},
		"columns":              {Config{Columns: Columns{Payload: "note"}}, []privilege.Privilege{usage, reads(`"app"."bookings"`, "created_at", "id", "note", "xmin"), sequence}},
		"order id":             {Config{Order: ID, Columns: Columns{Payload: "note"}}, []privilege.Privilege{usage, reads(`"app"."bookings"`, "created_at", "id", "note"), sequence}},
		"columns of the where": {Config{Columns: Columns{Payload: "id"}, Where: "note <> ''"}, []privilege.Privilege{usage, reads(`"app"."bookings"`, "created_at", "id", "note", "xmin"), sequence}},
		"other tables in the where": {Config{Columns: Columns{Payload: "id"}, Where: "EXISTS (SELECT 1 FROM app.allowed a WHERE a.id = t.id)"},
			[]privilege.Privilege{usage, reads(`"app"."allowed"`, "id"), reads(`"app"."bookings"`, "created_at", "id", "xmin"), sequence}},
		"keys alone": {Config{KeysOnly: true}, []privilege.Privilege{usage, reads(`"app"."bookings"`, "created_at", "id")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs, err := bookings(t, pool, c.config).Needs(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.needed, needs.Privileges)
			require.False(t, needs.Stats)
		})
	}
}

func TestNeeds_OfferStatsWhereTheyHelp(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable)
	needs, err := bookings(t, pool, Config{}).Needs(t.Context())
	require.NoError(t, err)
	require.True(t, needs.Stats)
	needs, err = bookings(t, pool, Config{Order: ID}).Needs(t.Context())
	require.NoError(t, err)
	require.False(t, needs.Stats, "no clock is involved")
}

func TestNeeds_OfWhatCannotBeReadSayWhy(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`CREATE VIEW app.view AS SELECT id FROM app.bookings`)
	for _, c := range []struct {
		config Config
		says   string
	}{
		{Config{Table: "bookings"}, `table bookings does not exist; fix: write source.table as app.bookings`},
		{Config{Columns: Columns{Payload: "body"}}, `find out what reading app.bookings needs: table app.bookings has no column body; fix: name it in source.columns.payload: app.bookings has created_at, id, note`},
		{Config{Columns: Columns{ID: "nr", CreatedAt: "made"}}, `table app.bookings has no column nr; fix: name it in source.columns.id: app.bookings has created_at, id, note; table app.bookings has no column made; fix: name a timestamptz`},
		{Config{Columns: Columns{CreatedAt: "note"}}, `column note of app.bookings is of type text, not timestamptz`},
		{Config{Table: "app.view"}, `app.view is a view`},
		{Config{Where: "true); SELECT (1"}, `find out what reading app.bookings needs`},
	} {
		_, err := bookings(t, pool, c.config).Needs(t.Context())
		require.ErrorContains(t, err, c.says)
	}
}
