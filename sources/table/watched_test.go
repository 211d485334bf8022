package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// watchedTables are tables whose partitions are told apart by more than what the position needs: the columns that this takes, and
// how many records each partition has.
var watchedTables = map[string]struct {
	sql     string
	columns string
	want    map[string]int64
}{
	"a list": {`
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), "the Region" text NOT NULL DEFAULT 'eu') PARTITION BY LIST ("the Region");
		CREATE TABLE app.eu PARTITION OF app.bookings FOR VALUES IN ('eu');
		CREATE TABLE app.rest PARTITION OF app.bookings DEFAULT;`,
		`"the Region"`, map[string]int64{"app.eu": 1, "app.rest": 0}},
	"a hash": {`
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region text NOT NULL DEFAULT 'eu') PARTITION BY HASH (region);
		CREATE TABLE app.h0 PARTITION OF app.bookings FOR VALUES WITH (MODULUS 1, REMAINDER 0);`,
		"region", map[string]int64{"app.h0": 1}},
	"parts by other keys, with other columns before": {`
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region text NOT NULL DEFAULT 'eu', kind int NOT NULL DEFAULT 1) PARTITION BY RANGE (created_at);
		CREATE TABLE app.m1 (kind int NOT NULL DEFAULT 1, region text NOT NULL DEFAULT 'eu', created_at timestamptz NOT NULL DEFAULT clock_timestamp(), id bigint NOT NULL) PARTITION BY LIST (region);
		CREATE TABLE app.m1_eu (id bigint NOT NULL, region text NOT NULL, kind int NOT NULL, created_at timestamptz NOT NULL) PARTITION BY RANGE (kind);
		CREATE TABLE app.m1_eu_1 PARTITION OF app.m1_eu FOR VALUES FROM (0) TO (10);
		ALTER TABLE app.m1 ATTACH PARTITION app.m1_eu FOR VALUES IN ('eu');
		ALTER TABLE app.bookings ATTACH PARTITION app.m1 FOR VALUES FROM ('2020-01-01') TO ('2100-01-01');`,
		"kind, region", map[string]int64{"app.m1": 1, "app.m1_eu": 1, "app.m1_eu_1": 1}},
	"an expression that calls a function": {`
		CREATE SCHEMA aux;
		CREATE FUNCTION aux.part(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1 || $2';
		REVOKE EXECUTE ON FUNCTION aux.part FROM PUBLIC;
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region text NOT NULL DEFAULT 'eu', kind text NOT NULL DEFAULT 'x')
			PARTITION BY RANGE (aux.part(region, kind), created_at);
		CREATE TABLE app.e1 PARTITION OF app.bookings FOR VALUES FROM ('a', MINVALUE) TO ('z', MAXVALUE);`,
		"kind, region", map[string]int64{"app.e1": 1}},
	"a type of another schema": {`
		CREATE SCHEMA aux;
		CREATE TYPE aux.region AS ENUM ('eu', 'us');
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region aux.region NOT NULL DEFAULT 'eu') PARTITION BY LIST (region);
		CREATE TABLE app.eu PARTITION OF app.bookings FOR VALUES IN ('eu');`,
		"region", map[string]int64{"app.eu": 1}},
	"a part of a larger table": {`
		CREATE TABLE app.all (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region text NOT NULL DEFAULT 'eu', kind int NOT NULL DEFAULT 1) PARTITION BY LIST (region);
		CREATE TABLE app.bookings PARTITION OF app.all (id DEFAULT 1) FOR VALUES IN ('eu') PARTITION BY LIST (kind);
		CREATE TABLE app.k1 PARTITION OF app.bookings FOR VALUES IN (1);`,
		"kind, region", map[string]int64{"app.k1": 1}},
	"no partition yet": {`
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), region text NOT NULL DEFAULT 'eu', kind text)
			PARTITION BY RANGE (region, lower(kind));`,
		"kind, region", map[string]int64{}},
	"tables that inherit": {`
		CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE TABLE app.heir (extra text, id bigint NOT NULL DEFAULT 7) INHERITS (app.bookings);
		INSERT INTO app.heir DEFAULT VALUES;`,
		"tableoid", map[string]int64{"app.heir": 1}},
}

// TestNeeds_HoldWhatTellsPartitionsApart: a role with these rights, and no others, can ask what each partition holds.
func TestNeeds_HoldWhatTellsPartitionsApart(t *testing.T) {
	t.Parallel()
	for name, c := range watchedTables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := database(t, "CREATE SCHEMA app;"+c.sql+"CREATE INDEX ON app.bookings (created_at, id);")
			if len(c.want) > 0 {
				exec(t, admin, "INSERT INTO app.bookings DEFAULT VALUES")
			}
			role, pool := user(t, admin)
			config := Config{Columns: Columns{Payload: "id"}}
			needs, err := bookings(t, admin, config).Needs(t.Context())
			require.NoError(t, err)
			for _, p := range needs.Privileges {
				exec(t, admin, privilege.Grant(role, p))
			}
			s := bookings(t, pool, config)
			found, err := s.InspectPartitions(t.Context())
			require.NoError(t, err)
			require.Empty(t, found)
			require.Equal(t, c.want, undelivered(t, s, ""))

			exec(t, admin, fmt.Sprintf("REVOKE SELECT (%s) ON app.bookings FROM %s", c.columns, role))
			found, err = s.InspectPartitions(t.Context())
			require.NoError(t, err)
			fix := fmt.Sprintf(`GRANT SELECT (%s) ON "app"."bookings" TO %s`, c.columns, role)
			require.Len(t, found, 1)
			require.Equal(t, fix, found[0].Fix)
			require.Contains(t, found[0].Problem, fmt.Sprintf("role %s may not read %s of app.bookings, which identifies its partitions", role, c.columns))
			partitions, err := s.Partitions(t.Context())
			require.NoError(t, err)
			denied := 0
			for _, p := range partitions {
				if _, err := s.Undelivered(t.Context(), "", p); err != nil {
					require.ErrorContains(t, err, "; fix: "+fix)
					denied++
				}
			}
			require.Equal(t, len(partitions) > 0, denied > 0)
			exec(t, admin, fix)
			require.Equal(t, c.want, undelivered(t, s, ""))
		})
	}
}

// TestInspectPartitions_NamesARightThatIsNoColumn: a function of a partition key.
func TestInspectPartitions_NamesARightThatIsNoColumn(t *testing.T) {
	t.Parallel()
	admin := database(t, "CREATE SCHEMA app;"+watchedTables["an expression that calls a function"].sql+"CREATE INDEX ON app.bookings (created_at, id);")
	role, pool := user(t, admin)
	exec(t, admin, fmt.Sprintf("GRANT USAGE ON SCHEMA app, aux TO %[1]s; GRANT SELECT, SELECT (xmin) ON app.bookings TO %[1]s; GRANT SELECT ON ALL SEQUENCES IN SCHEMA app TO %[1]s", role))
	s := bookings(t, pool, Config{Columns: Columns{Payload: "id"}})
	found, err := s.InspectPartitions(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Problem, "permission denied for function part (SQLSTATE 42501)")
	require.Contains(t, found[0].Fix, "ordered-dispatcher grants")
}

// TestNeeds_OfOperatorsHoldNoPartitionKey: they ask about no partition, and see no more than positions and ids.
func TestNeeds_OfOperatorsHoldNoPartitionKey(t *testing.T) {
	t.Parallel()
	pool := database(t, "CREATE SCHEMA app;"+watchedTables["a list"].sql+"CREATE INDEX ON app.bookings (created_at, id);")
	needs, err := bookings(t, pool, Config{KeysOnly: true}).Needs(t.Context())
	require.NoError(t, err)
	for _, p := range needs.Privileges {
		require.NotContains(t, p.Columns, "the Region")
	}
}
