package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInspect_SequenceThatDoesNotGiveTheOrder(t *testing.T) {
	t.Parallel()
	const seq = "sequence app.bookings_id_seq "
	for change, problem := range map[string]string{
		"CACHE 50":        seq + "hands out ids in blocks (CACHE 50): a session may commit an id below those already delivered",
		"CYCLE":           seq + "starts again at its end (CYCLE), below what was delivered",
		"INCREMENT BY -1": seq + "counts down",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`ALTER SEQUENCE app.bookings_id_seq MINVALUE -1000 `+change, Config{Order: ID})
			require.Equal(t, Refuse, found(t, s, problem).Severity)
			fixed(t, pool, s, problem)
			sound(t, s)
			sound(t, bookings(t, pool, Config{})) // ordered by time the sequence does not matter
		})
	}
	t.Run("all at once", func(t *testing.T) {
		t.Parallel()
		_, s := sourceOn(t, bookingsSQL+`ALTER SEQUENCE app.bookings_id_seq CACHE 2 CYCLE`, Config{Order: ID})
		_, err := s.Read(t.Context(), "", 1)
		require.ErrorContains(t, err, "CACHE 1")
		require.ErrorContains(t, err, "NO CYCLE")
	})
}

func TestInspect_IDThatNoSequenceAssigns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, problem string }{
		"no default":    {`ALTER TABLE app.bookings ALTER id DROP IDENTITY`, "no sequence assigns column id of app.bookings"},
		"a function":    {`ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id SET DEFAULT (random() * 1e9)`, "no sequence assigns column id of app.bookings"},
		"late bound":    {`ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s'::text)`, "no sequence assigns column id of app.bookings"},
		"an expression": {`ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s') * 10`, "defaults to (nextval('app.s'::regclass) * 10): its values are not those of the sequence, which is the fence"},
		"one per heir":  {`CREATE TABLE app.heir (id bigint DEFAULT nextval('app.s')) INHERITS (app.bookings)`, "several sequences assign column id of app.bookings in its partitions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL+`CREATE SEQUENCE app.s;`+c.sql)
			f := found(t, bookings(t, pool, Config{Order: ID}), c.problem)
			require.Equal(t, Refuse, f.Severity)
			require.Equal(t, "order by created_at", f.Fix)
		})
	}
}

// As after an import that did not set the sequence.
func TestInspect_IDsPastTheirSequenceAreNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (id) VALUES (7), (500)`, Config{Order: ID})
	page := read(t, s, "", 10)
	require.Empty(t, page.Records)
	require.True(t, page.Waiting)
	fixed(t, pool, s, `column "id" of app.bookings reaches 500, and its sequence app.bookings_id_seq stands at 0: rows past it wait`)
	sound(t, s)
	require.Equal(t, []string{"7", "500"}, ids(readAll(t, s, "", 10)))
}

func TestInspect_IndexThatDoesNotGiveTheOrder(t *testing.T) {
	t.Parallel()
	const textID = `ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id TYPE text;`
	for name, c := range map[string]struct {
		sql    string
		config Config
		fix    string
	}{
		"none":             {``, Config{}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"too short":        {`CREATE INDEX ON app.bookings (created_at)`, Config{}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"wrong order":      {`CREATE INDEX ON app.bookings (id, created_at)`, Config{}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"mixed directions": {`CREATE INDEX ON app.bookings (created_at, id DESC)`, Config{}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"nulls elsewhere":  {`CREATE INDEX ON app.bookings (created_at NULLS FIRST, id)`, Config{}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"BRIN":             {`CREATE INDEX ON app.bookings USING brin (created_at, id)`, Config{}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"another part":     {`CREATE INDEX ON app.bookings (created_at, id) WHERE note = 'a'`, Config{Where: "note = 'b'"}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id")`},
		"another collation": {textID + `CREATE INDEX ON app.bookings (created_at, id COLLATE "POSIX"); CREATE INDEX ON app.bookings (created_at, id)`, Config{},
			`CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id" COLLATE "C")`},
		"order id": {`ALTER TABLE app.bookings DROP CONSTRAINT bookings_pkey`, Config{Order: ID}, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("id")`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`DROP INDEX app.bookings_order;`+c.sql, c.config)
			f := found(t, s, "every read sorts all rows after the cursor")
			require.Equal(t, Warn, f.Severity)
			require.Equal(t, c.fix, f.Fix)
			exec(t, pool, f.Fix)
			sound(t, s)
		})
	}
}

func TestInspect_IndexOfPartitionsAndHeirs(t *testing.T) {
	t.Parallel()
	const missing = "every read sorts all rows after the cursor"
	t.Run("partitions", func(t *testing.T) {
		t.Parallel()
		pool, s := sourceOn(t, partitionedSQL+`ALTER TABLE app.bookings DROP CONSTRAINT bookings_pkey`, Config{})
		require.Contains(t, found(t, s, missing).Fix, "CREATE INDEX CONCURRENTLY ")
		fixed(t, pool, s, missing)
		sound(t, s) // no index could prove that positions differ: it would have to hold region as well
	})
	t.Run("one partition has it not", func(t *testing.T) {
		t.Parallel()
		pool := database(t, partitionedSQL+`ALTER TABLE app.bookings DROP CONSTRAINT bookings_pkey; CREATE UNIQUE INDEX ON app.bookings_a (created_at, id)`)
		found(t, bookings(t, pool, Config{}), missing)
	})
	t.Run("heirs", func(t *testing.T) {
		t.Parallel()
		pool, s := sourceOn(t, bookingsSQL+`CREATE TABLE app.heir () INHERITS (app.bookings)`, Config{})
		f := found(t, s, missing)
		require.Equal(t, `CREATE INDEX CONCURRENTLY ON "app"."bookings" ("created_at", "id"), and the same on each table that inherits from it`, f.Fix)
		exec(t, pool, `CREATE INDEX CONCURRENTLY ON "app"."heir" ("created_at", "id")`)
		sound(t, s)
	})
}

func TestInspect_RowsThatMayShareAPositionAreNamed(t *testing.T) {
	t.Parallel()
	const problem = "nothing keeps (created_at, id) of app.bookings unique: two rows with the same values would stop the process, since the second would be passed over"
	pool, s := sourceOn(t, bookingsSQL+`
		ALTER TABLE app.bookings DROP CONSTRAINT bookings_pkey;
		DROP INDEX app.bookings_order;
		CREATE INDEX ON app.bookings (created_at, id);
		CREATE UNIQUE INDEX ON app.bookings (created_at, id, note);
		CREATE UNIQUE INDEX of_some ON app.bookings (id) WHERE id > 7;
		CREATE UNIQUE INDEX ON app.bookings ((id + 1));`, Config{})
	fixed(t, pool, s, problem)
	sound(t, s)
	for _, unique := range []string{"(created_at, id)", "(id, created_at) INCLUDE (note)", "(created_at)"} {
		exec(t, pool, `DROP INDEX app.bookings_id_idx`)
		found(t, s, problem)
		exec(t, pool, fmt.Sprintf(`CREATE UNIQUE INDEX bookings_id_idx ON app.bookings %s`, unique))
		sound(t, s)
	}
}

func TestInspect_OneIndexIsProposedForOrderAndUniqueness(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"table":      bookingsSQL + `ALTER TABLE app.bookings DROP CONSTRAINT bookings_pkey; DROP INDEX app.bookings_order`,
		"partitions": `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp()) PARTITION BY RANGE (created_at); CREATE TABLE app.all PARTITION OF app.bookings DEFAULT`,
		"text ids":   `CREATE SCHEMA app; CREATE TABLE app.bookings (id text NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, sql, Config{})
			findings, err := s.Inspect(t.Context())
			require.NoError(t, err)
			require.Len(t, findings, 1, "%v", findings)
			require.Contains(t, findings[0].Fix, "CREATE UNIQUE INDEX CONCURRENTLY ")
			fixed(t, pool, s, "gives the order")
			sound(t, s)
		})
	}
}
