package table

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestAssigned_FindsWhatATriggerPutsIntoAColumn(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"BEGIN NEW.created_at := now(); RETURN NEW; END":                                              "now()",
		"BEGIN new.created_at = clock_timestamp(); RETURN NEW; END":                                   "clock_timestamp()",
		"BEGIN\n  IF NEW.created_at IS NULL THEN\n    NEW . \"created_at\" :=\n  now();\nEND IF; END": "now()",
		"BEGIN NEW.note := 'x'; NEW.CREATED_AT := coalesce(NEW.created_at,\n\tnow()); END":            "coalesce(NEW.created_at, now())",
		"BEGIN /* NEW.note := 1; */ NEW.created_at := now(); END":                                     "now()",
		"BEGIN NEW.updated_at := now(); RETURN NEW; END":                                              "",
		"BEGIN IF NEW.created_at = OLD.created_at THEN RETURN NULL; END IF; END":                      "",
		"BEGIN\n-- NEW.created_at := now();\n/*; NEW.created_at := now();\n*/ RETURN NEW; END":        "",
		"BEGIN x.created_at := NEW.created_at; RETURN NEW; END":                                       "",

		"BEGIN IF a THEN NEW.created_at := clock_timestamp(); ELSE NEW.created_at := now(); END IF; RETURN NEW; END": "clock_timestamp() | now()",
		"BEGIN NEW.created_at := 1; NEW.created_at := 2; NEW.created_at := 3; END":                                   "1 | 2 | 3",
		"BEGIN SELECT now() INTO NEW.created_at; RETURN NEW; END":                                                    "NEW.created_at (INTO)",
		"BEGIN SELECT 1, now() INTO STRICT NEW.id, NEW.created_at FROM x; END":                                       "NEW.created_at (INTO)",
		"BEGIN SELECT * INTO NEW FROM x; END":                                                                        "NEW (INTO)",
		"BEGIN NEW := jsonb_populate_record(NEW, '{}'); RETURN NEW; END":                                             "jsonb_populate_record(NEW, '{}') (the whole row)",
		"BEGIN INSERT INTO new VALUES (1); SELECT 1 INTO NEW.created_at_2; RETURN NEW; END":                          "",
	} {
		found := assigned(source, "created_at")
		require.Equal(t, want, strings.Join(found.values, " | "), source)
		if strings.Contains(source, "RETURN NEW") {
			require.Empty(t, found.unread, source)
		}
	}
}

// What is not known to leave the column alone is named, by all that names NEW. Comments in
// strings, and strings in comments, hide nothing.
func TestAssigned_NamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"DECLARE r app.b%ROWTYPE; BEGIN r := NEW; r.created_at := now(); RETURN r; END":                                    "? RETURN r",
		"BEGIN CALL stamp(NEW.created_at); RETURN NEW; END":                                                                "? CALL stamp(NEW.created_at)",
		"BEGIN CALL stamp(NEW); RETURN NEW; END":                                                                           "? CALL stamp(NEW)",
		"BEGIN FOR NEW.created_at IN SELECT now() LOOP EXIT; END LOOP; RETURN NEW; END":                                    "? FOR NEW.created_at",
		"BEGIN FOR a, NEW.created_at IN SELECT 1, now() LOOP END LOOP; RETURN NEW; END":                                    "? FOR a, NEW.created_at",
		"BEGIN FOR NEW IN SELECT * FROM x LOOP EXIT; END LOOP; RETURN NEW; END":                                            "? FOR NEW",
		"BEGIN FOREACH NEW.created_at IN ARRAY a LOOP EXIT; END LOOP; RETURN NEW; END":                                     "? FOREACH NEW.created_at",
		"DECLARE n ALIAS FOR NEW; BEGIN n.created_at := now(); RETURN n; END":                                              "? FOR NEW, RETURN n",
		"BEGIN RETURN jsonb_populate_record(NEW, '{}'); END":                                                               "? RETURN jsonb_populate_record(NEW, '{}')",
		"BEGIN RETURN (NEW.id, now(), 'x'); END":                                                                           "? RETURN (NEW.id, now(), 'x')",
		"BEGIN GET DIAGNOSTICS NEW.created_at = PG_CONTEXT; RETURN NEW; END":                                               "? GET DIAGNOSTICS NEW.created_at = PG_CONTEXT",
		`BEGIN U&"n\0065w".created_at := now(); RETURN NEW; END`:                                                           "? its text",
		`BEGIN RAISE DEBUG 'a\'; NEW.created_at := now(); --'; RETURN NEW; END`:                                            "? its text",
		"BEGIN RAISE DEBUG 'a -- b'; NEW.created_at := now(); RETURN NEW; END":                                             "now()",
		"BEGIN RAISE DEBUG 'a /* b'; NEW.created_at := now(); /* */ RETURN NEW; END":                                       "now()",
		"BEGIN RAISE DEBUG E'it\\'s -- '; NEW.created_at := now(); RETURN NEW; END":                                        "now()",
		"BEGIN RAISE DEBUG $a$ -- $b$ /* $a$; NEW.created_at := now(); RETURN NEW; END":                                    "now()",
		"BEGIN IF true THEN /* it's /* nested */ */ NEW . created_at = now(); END IF; RETURN NEW; END":                     "now()",
		"BEGIN stamp.NEW.created_at := now(); RETURN NEW; END":                                                             "now()",
		"<<b>> BEGIN <<c>> NEW.created_at := /* x */ now() -- y\n; RETURN NEW; END":                                        "now()",
		"BEGIN NEW.\"created_at\":=now(); \"new\".created_at=-1; RETURN NEW; END":                                          "now() | -1",
		"BEGIN INSERT INTO x SELECT 1 RETURNING at INTO NEW.created_at; RETURN NEW; END":                                   "NEW.created_at (INTO)",
		"BEGIN EXECUTE 'SELECT now()' INTO NEW.created_at; RETURN NEW; END":                                                "NEW.created_at (INTO)",
		"BEGIN INSERT INTO audit VALUES (NEW.id, NEW.created_at, to_jsonb(NEW)); RETURN NEW; END":                          "",
		"BEGIN PERFORM pg_notify('x', NEW.created_at::text); EXECUTE 'SELECT $1.id' USING NEW; RETURN NEW; END":            "",
		"BEGIN IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at = now(); END IF; RETURN COALESCE(NEW, OLD); END":            "",
		"BEGIN RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END":                                               "",
		"BEGIN RAISE NOTICE 'NEW.created_at := now();'; FOR i IN 1..NEW.n LOOP CALL p(NEW.id); END LOOP; RETURN NULL; END": "",
	} {
		source = strings.ReplaceAll(source, `\n`, "\n")
		found := assigned(source, "created_at")
		got := strings.Join(found.values, " | ")
		if len(found.unread) > 0 {
			got += "? " + strings.Join(found.unread, ", ")
		}
		require.Equal(t, want, got, source)
	}
}

// A trigger that stamps its row otherwise than the default never goes unnamed.
func TestInspect_TriggersThatCannotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"RAISE DEBUG 'a -- b'; NEW.created_at := now() - interval '1 hour'; RETURN NEW;",
		"r := NEW; r.created_at := now(); RETURN r;",
		"CALL app.stamp(NEW.created_at); RETURN NEW;",
		"FOR NEW.created_at IN SELECT now() LOOP EXIT; END LOOP; RETURN NEW;",
		"n.created_at := now(); RETURN NEW;",
		"NEW . created_at = now() - interval '1 hour'; RETURN NEW;",
		"f.NEW.created_at := now() - interval '1 hour'; RETURN NEW;",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL+`
				CREATE PROCEDURE app.stamp(INOUT a timestamptz) LANGUAGE plpgsql AS 'BEGIN a := now(); END';
				CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS $f$ DECLARE r app.bookings; n ALIAS FOR NEW; BEGIN `+body+` END $f$;`)
			if !strings.Contains(body, "n.created_at") {
				exec(t, pool, strings.Replace(pgtest.Value[string](t, pool, `SELECT pg_get_functiondef('app.f'::regproc)`), "n ALIAS FOR NEW;", "", 1))
			}
			exec(t, pool, `CREATE TRIGGER stamp BEFORE INSERT ON app.bookings FOR EACH ROW EXECUTE FUNCTION app.f();
				BEGIN; SELECT pg_sleep(0.1); INSERT INTO app.bookings DEFAULT VALUES; COMMIT`)
			require.True(t, pgtest.Value[bool](t, pool, `SELECT created_at < clock_timestamp() - interval '90 ms' FROM app.bookings`), "it does stamp")
			require.Equal(t, Warn, found(t, bookings(t, pool, Config{}), "trigger stamp of app.bookings").Severity)
		})
	}
}

func TestUpdates_FindsTheTableWhoseColumnIsSet(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"BEGIN UPDATE app.b SET created_at = now() WHERE id = NEW.id; RETURN NULL; END":                                                                    "b",
		`BEGIN UPDATE ONLY "app"."b" AS x SET note = 'x', "created_at" = now(); RETURN NULL; END`:                                                          "b",
		"BEGIN UPDATE b SET (note, created_at) = ('x', now()); RETURN NULL; END":                                                                           "b",
		"BEGIN UPDATE b SET note = 'x' WHERE id = 1; RETURN NULL; END":                                                                                     "",
		"BEGIN UPDATE b SET updated_at = created_at; RETURN NULL; END":                                                                                     "",
		"BEGIN INSERT INTO b VALUES (1); PERFORM 'UPDATE b SET created_at = 1'; RETURN NULL; END":                                                          "",
		"BEGIN UPDATE a SET note = 1; UPDATE b SET created_at = now(); RETURN NULL; END":                                                                   "b",
		"BEGIN INSERT INTO b VALUES (1) ON CONFLICT (id) DO UPDATE SET created_at = now(); RETURN NULL; END":                                               "b",
		"BEGIN MERGE INTO b USING c ON b.id = c.id WHEN MATCHED THEN UPDATE SET created_at = now(); RETURN NULL; END":                                      "b",
		"BEGIN INSERT INTO b VALUES (1) ON CONFLICT (id) DO UPDATE SET note = 'x'; RETURN NULL; END":                                                       "",
		"BEGIN EXECUTE format('UPDATE %s SET created_at = now() WHERE id = $1', TG_RELID::regclass) USING NEW.id; RETURN NULL; END":                        "unread",
		"BEGIN EXECUTE format('INSERT INTO log SELECT $1.*', TG_RELID::regclass) USING NEW; RETURN NULL; END":                                              "",
		"BEGIN INSERT INTO stats VALUES (1) ON CONFLICT (id) DO UPDATE SET last = NEW.created_at, n = greatest(stats.n, NEW.created_at); RETURN NULL; END": "",
		"BEGIN UPDATE stats SET n = n + 1 WHERE id = 1 RETURNING created_at, n INTO a, b; RETURN NULL; END":                                                "",
		"BEGIN IF TG_OP = 'UPDATE' THEN EXECUTE format('INSERT INTO log (created_at) VALUES ($1)') USING NEW.created_at; END IF; RETURN NULL; END":         "",
		"BEGIN PERFORM 1 FROM b WHERE id = 1 FOR UPDATE; SELECT created_at INTO a FROM b; RETURN NULL; END":                                                "",
		"BEGIN /* never ends UPDATE b SET created_at = now(); RETURN NULL; END":                                                                            "unread",
	} {
		tables, unread := updates(source, "created_at")
		got := strings.Join(tables, " ")
		if unread {
			got += "unread"
		}
		require.Equal(t, want, got, source)
	}
}

func TestInspect_TriggerThatChangesTheOrderLaterIsNamed(t *testing.T) {
	t.Parallel()
	after := func(sql string) string {
		return bookingsSQL + `CREATE FUNCTION app.later() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ` + sql + `; RETURN NULL; END';
			CREATE TRIGGER later AFTER INSERT ON app.bookings FOR EACH ROW EXECUTE FUNCTION app.later();`
	}
	t.Run("the order", func(t *testing.T) {
		t.Parallel()
		s := bookings(t, database(t, after("UPDATE app.bookings SET created_at = now() WHERE id = NEW.id")), Config{})
		f := found(t, s, "trigger later of app.bookings updates column created_at of rows that are inserted already")
		require.Equal(t, Warn, f.Severity)
		require.Contains(t, f.Fix, `DROP TRIGGER "later" ON app.bookings`)
	})
	t.Run("another column", func(t *testing.T) {
		t.Parallel()
		sound(t, bookings(t, database(t, after("UPDATE app.bookings SET note = NULL WHERE id = NEW.id")), Config{}))
	})
}

func TestInspect_TriggerThatSetsTheOrderIsNamed(t *testing.T) {
	t.Parallel()
	trigger := func(table, body string) string {
		return `CREATE FUNCTION app.stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ` + body + `; RETURN NEW; END';
			CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION app.stamp();`
	}
	for name, c := range map[string]struct {
		sql     string
		config  Config
		problem string
	}{
		"of the transaction": {bookingsSQL + trigger("app.bookings", "NEW.created_at := now()"), Config{},
			"trigger stamp of app.bookings sets column created_at to now(), over its default"},
		"of a partition": {partitionedSQL + trigger("app.bookings_b1", "NEW.created_at := $$2020-01-01$$"), Config{},
			"trigger stamp of app.bookings_b1 sets column created_at to $$2020-01-01$$"},
		"of the tree, once": {partitionedSQL + trigger("app.bookings", "NEW.created_at := now()"), Config{}, "trigger stamp of app.bookings sets"},
		"of the id":         {bookingsSQL + trigger("app.bookings", "NEW.id := 7"), Config{Order: ID}, "trigger stamp of app.bookings sets column id to 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := sourceOn(t, c.sql, c.config)
			f := found(t, s, c.problem)
			require.Equal(t, Warn, f.Severity)
			findings, err := s.Inspect(t.Context())
			require.NoError(t, err)
			require.Len(t, findings, 1)
			require.Contains(t, f.Fix, `DROP TRIGGER "stamp" ON app.bookings`)
		})
	}
	for name, sql := range map[string]string{
		"after the lock":       bookingsSQL + trigger("app.bookings", "NEW.created_at := clock_timestamp()"),
		"another column":       bookingsSQL + trigger("app.bookings", "NEW.note := now()"),
		"one that is disabled": bookingsSQL + trigger("app.bookings", "NEW.created_at := now()") + `ALTER TABLE app.bookings DISABLE TRIGGER stamp`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sound(t, bookings(t, database(t, sql), Config{}))
		})
	}
}

func TestInspect_UnloggedTableIsNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`ALTER TABLE app.bookings SET UNLOGGED`, Config{})
	fixed(t, pool, s, "app.bookings is unlogged: a crash of the server empties it")
	sound(t, s)
}

// A trigger that stamps rows with the start of their transaction takes the fence of
// such a default, and the right to see it.
func TestRead_ATriggerThatStampsWithNowIsFencedAsNow(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`
		CREATE FUNCTION app.stamp() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
			IF NEW.note = 'x' THEN NEW.created_at := clock_timestamp(); ELSE NEW.created_at := Now(); END IF; RETURN NEW; END$$;
		CREATE TRIGGER stamp BEFORE INSERT ON app.bookings FOR EACH ROW EXECUTE FUNCTION app.stamp()`)
	refused := found(t, bookings(t, readerPool(t, pool, "another"), Config{}), "trigger stamp of app.bookings stamps rows with Now(), the start of a transaction")
	require.Equal(t, Refuse, refused.Severity)

	s := bookings(t, readerPool(t, pool, "stats"), Config{Latency: time.Millisecond})
	require.Empty(t, readAll(t, s, "", 10))
	late := begun(t, pool, `SELECT 1`)
	exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('x')`)
	holdsBack(t, s, "")
	late.do(`INSERT INTO app.bookings (note) VALUES ('late'); COMMIT`)
	require.Equal(t, []string{"late", "x"}, notes(t, readAll(t, s, "", 10)))
}
