package sql_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// encoded is a target in a database of an encoding, whose sessions begin in another one.
func encoded(t *testing.T, server, client string) *remote {
	t.Helper()
	admin := pgtest.Database(t)
	name := admin.Config().ConnConfig.Database + "_encoded"
	pgtest.Exec(t, admin, fmt.Sprintf(`CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`, name, server))
	t.Cleanup(func() {
		_, err := admin.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+name+` WITH (FORCE)`)
		require.NoError(t, err)
	})
	pgtest.Exec(t, admin, fmt.Sprintf(`ALTER DATABASE %s SET client_encoding = '%s'`, name, client))
	address, err := url.Parse(admin.Config().ConnString())
	require.NoError(t, err)
	address.Path = "/" + name
	r := &remote{address: address.String(), url: address.String()}
	r.pool = pgtest.Pool(t, pgtest.With(t, r.address, "client_encoding", "UTF8"), pgtest.PoolConfig{})
	r.exec(t, r.sink(t, nil).Tables())
	r.exec(t, `CREATE TABLE public.received (n bigint GENERATED ALWAYS AS IDENTITY, id text, type text, dedup_key text, payload text)`)
	return r
}

// The server converts what it keeps in another encoding, also where the role, the
// database or the url says otherwise.
func TestRemote_TextsArriveAsTheyAreInADatabaseOfAnotherEncoding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ server, client, url string }{
		"database":          {"LATIN1", "LATIN1", ""},
		"its sessions":      {"UTF8", "LATIN1", ""},
		"both, and the url": {"LATIN1", "WIN1252", "client_encoding=LATIN1"},
		"options":           {"LATIN1", "UTF8", "options=-c%20client_encoding%3DLATIN1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := encoded(t, c.server, c.client)
			s := r.sink(t, func(rc *sql.Config) {
				address, err := url.Parse(rc.URL)
				require.NoError(t, err)
				address.RawQuery += "&" + c.url
				rc.URL = address.String()
				rc.Statements = []string{receivedSQL, "INSERT INTO public.received (type) VALUES ('ü')"}
			})
			ds := sinktest.Deliveries(1, 1)
			ds[0].Type = "é"
			sinktest.Delivered(t, s, ds)
			require.Equal(t, "é/1 ü/1", r.text(t, "SELECT string_agg(format('%s/%s', type, length(type)), ' ' ORDER BY n) FROM public.received"))
			require.NoError(t, s.Check(t.Context()))
		})
	}
}

func TestRemote_ACharacterThatTheTargetLacksFailsItsRecord(t *testing.T) {
	t.Parallel()
	r := encoded(t, "LATIN1", "LATIN1")
	s := r.sink(t, nil)
	ds := sinktest.Deliveries(1, 3)
	ds[1].Type = "日"
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 1, n)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, `apply record "2"`)
	require.ErrorContains(t, err, "22P05")
	sinktest.Delivered(t, s, ds[2:]) // it was put aside
	require.Equal(t, "1 3", r.ids(t))
}

// Put aside, it would look lost: the target cannot note that it failed.
func TestRemote_ACharacterThatTheNotesCannotHoldHaltsTheProcess(t *testing.T) {
	t.Parallel()
	r := encoded(t, "LATIN1", "LATIN1")
	s := r.sink(t, func(c *sql.Config) { c.Statements = []string{"INSERT INTO public.received (type) VALUES (@type)"} })
	for name, change := range map[string]func(*processor.Delivery){
		"its id":             func(d *processor.Delivery) { d.ID = "日" },
		"its type and id":    func(d *processor.Delivery) { d.ID, d.Type = "日", "日" },
		"the process's name": func(d *processor.Delivery) { d.Process = "日" },
	} {
		ds := sinktest.Deliveries(1, 1)
		change(&ds[0])
		n, err := sinktest.Deliver(t, s, ds)
		require.Zero(t, n)
		require.True(t, processor.IsRefused(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "deliver to a database in UTF8")
	}
	require.Empty(t, r.ids(t))
}
