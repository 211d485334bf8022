package table

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// node is a node of a plan, with what a plan test asks of it.
type node struct {
	Type   string  `json:"Node Type"`
	Table  string  `json:"Relation Name"`
	Index  string  `json:"Index Name"`
	Cond   string  `json:"Index Cond"`
	Filter string  `json:"Filter"`
	Rows   float64 `json:"Actual Rows"`
	Hit    int     `json:"Shared Hit Blocks"`
	Read   int     `json:"Shared Read Blocks"`
	Plans  []node
}

func (n node) all() []node {
	nodes := []node{n}
	for _, child := range n.Plans {
		nodes = append(nodes, child.all()...)
	}
	return nodes
}

// explained runs one statement of a read under EXPLAIN ANALYZE: prepared, as a
// read runs it, in a transaction that begins as a read does.
func explained(t testing.TB, s *Source, after cursor.Position, limit int, wanted string) node {
	t.Helper()
	l := s.mustLayout(t)
	query, args, err := l.query(s.config, after, limit)
	require.NoError(t, err)
	conn := newSession(t, s.pool)
	for _, statement := range l.statements(s.config, query, args) {
		if part(statement) != wanted {
			conn.do(statement.SQL)
			continue
		}
		conn.do("PREPARE wanted AS " + statement.SQL)
		execute := "EXECUTE wanted"
		if len(statement.Args) > 0 {
			var values []string
			for _, arg := range statement.Args {
				values = append(values, literal(string(arg)))
			}
			execute += "(" + strings.Join(values, ", ") + ")"
		}
		var plans []struct{ Plan node }
		printed := pgtest.Value[string](t, simple{conn.Conn}, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute)
		require.NoError(t, json.Unmarshal([]byte(printed), &plans))
		return plans[0].Plan
	}
	require.FailNow(t, "a read has no "+wanted)
	return node{}
}

// simple sends queries by the simple protocol.
type simple struct{ *pgx.Conn }

func (s simple) QueryRow(ctx context.Context, sql string, _ ...any) pgx.Row {
	return s.Conn.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol)
}

// filled has rows rows, of which a hundred each have one time.
func filled(rows int, idType, id, collate string) string {
	return fmt.Sprintf(`CREATE SCHEMA app;
		CREATE TABLE app.bookings (id %s NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
		INSERT INTO app.bookings SELECT %s, timestamptz '2026-01-01 00:00+00' + (i / 100) * interval '1 s', repeat('x', 200) FROM generate_series(1, %d) i;
		CREATE UNIQUE INDEX ON app.bookings (created_at, id%s);`, idType, id, rows, collate)
}

var filledTables = map[string]struct {
	sql    string
	config Config
}{
	"bigint":   {filled(100_000, "bigint", "i", ""), Config{}},
	"integer":  {filled(100_000, "integer", "i", ""), Config{}},
	"smallint": {filled(30_000, "smallint", "i", ""), Config{}},
	"uuid":     {filled(100_000, "uuid", "gen_random_uuid()", ""), Config{}},
	"text":     {filled(100_000, "text", "gen_random_uuid()", ` COLLATE "C"`), Config{}},
	"varchar":  {filled(100_000, `varchar(40) COLLATE "C"`, "gen_random_uuid()", ""), Config{}},
	"where":    {filled(100_000, "bigint", "i", ""), Config{Where: "id % 2 = 0 AND note <> 'y'"}},
	"id": {filled(100_000, "bigint", "i", "") + `CREATE SEQUENCE app.s; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s');
		SELECT setval('app.s', 100000); CREATE UNIQUE INDEX ON app.bookings (id)`, Config{Order: ID}},
	"integer id": {filled(100_000, "integer", "i", "") + `CREATE SEQUENCE app.s; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.s');
		SELECT setval('app.s', 100000); CREATE UNIQUE INDEX ON app.bookings (id)`, Config{Order: ID}},
	"timestamp": {filled(100_000, "bigint", "i", "") + `ALTER TABLE app.bookings ALTER created_at TYPE timestamp, ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc')`, Config{}},
	"hash partitions": {`CREATE SCHEMA app;
		CREATE TABLE app.bookings (id bigint, created_at timestamptz DEFAULT clock_timestamp(), note text, PRIMARY KEY (created_at, id)) PARTITION BY HASH (id);
		CREATE TABLE app.p0 PARTITION OF app.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE app.p1 PARTITION OF app.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		INSERT INTO app.bookings SELECT i, timestamptz '2026-01-01 00:00+00' + (i / 100) * interval '1 s', repeat('x', 200) FROM generate_series(1, 100000) i`, Config{}},
	"range partitions": {`CREATE SCHEMA app;
		CREATE TABLE app.bookings (id bigint, created_at timestamptz DEFAULT clock_timestamp(), note text, PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at);
		CREATE TABLE app.p0 PARTITION OF app.bookings FOR VALUES FROM (MINVALUE) TO ('2026-01-01 00:08:00+00');
		CREATE TABLE app.p1 PARTITION OF app.bookings FOR VALUES FROM ('2026-01-01 00:08:00+00') TO (MAXVALUE);
		INSERT INTO app.bookings SELECT i, timestamptz '2026-01-01 00:00+00' + (i / 100) * interval '1 s', repeat('x', 200) FROM generate_series(1, 100000) i`, Config{}},
	"heirs": {filled(50_000, "bigint", "i", "") + `CREATE TABLE app.heir () INHERITS (app.bookings);
		INSERT INTO app.heir SELECT i, timestamptz '2026-01-01 00:00+00' + (i / 100) * interval '1 s', repeat('x', 200) FROM generate_series(50001, 100000) i;
		CREATE INDEX ON app.heir (created_at, id)`, Config{}},
}

// The read goes by index range, from the position on, and touches little else
// than what it returns: on a table that was just filled and never analyzed, and on
// one whose statistics are known.
func TestPlan_ReadGoesByIndexRange(t *testing.T) {
	t.Parallel()
	const limit = 100
	for name, c := range filledTables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := inTimeZone(t, database(t, c.sql), "UTC")
			s := bookings(t, pool, c.config)
			for _, analyze := range []string{"", "ANALYZE app.bookings"} {
				exec(t, pool, analyze)
				middle := s.middle(t)
				for _, after := range []cursor.Position{"", middle} {
					plan := explained(t, s, after, limit, "read")
					scans := 0
					for _, n := range plan.all() {
						require.NotContains(t, n.Type, "Sort", analyze)
						require.NotEqual(t, "Seq Scan", n.Type, analyze)
						if n.Table == "" {
							continue
						}
						scans++
						require.Contains(t, []string{"Index Scan", "Index Only Scan"}, n.Type, analyze)
						if after == "" {
							continue
						}
						if s.config.Order == ID {
							require.Equal(t, "(id > $1)", n.Cond)
						} else {
							require.Regexp(t, `\(ROW\((t(_\d)?\.)?created_at, .*id.*\) > ROW\(\$1, \$2\)\)`, n.Cond)
						}
						require.NotContains(t, n.Filter, "ROW(")
					}
					require.NotZero(t, scans)
					require.EqualValues(t, limit, plan.Rows)
					require.Less(t, plan.Hit+plan.Read, 4*limit, "blocks")
				}
			}
		})
	}
}

// middle is the position of a record in the middle of the table.
func (s *Source) middle(t testing.TB) cursor.Position {
	t.Helper()
	l := s.mustLayout(t)
	id := "50000"
	switch l.kind {
	case kindAtUUID:
		id = "80000000-0000-0000-0000-000000000000"
	case kindAtText:
		id = "8"
	}
	at := pgtest.Value[int64](t, s.pool, `SELECT (extract(epoch FROM timestamptz '2026-01-01 00:02:00+00') * 1000000)::bigint`)
	p, err := l.kind.position(key{at: at, id: id})
	require.NoError(t, err)
	return p
}

// The other statements read catalogs and locks alone, however large the table.
func TestPlan_OtherStatementsDoNotReadTheTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   string
		parts []string
	}{
		"clock_timestamp": {bookingsSQL, []string{"mark", "writers"}},
		"now":             {nowTable, []string{"mark", "waiting", "activity", "prepared"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := sourceOn(t, c.sql, Config{})
			for _, part := range c.parts {
				for _, n := range explained(t, s, "", 1, part).all() {
					require.False(t, strings.HasPrefix(n.Table, "bookings"), part)
					if strings.HasSuffix(n.Type, "Seq Scan") {
						require.Contains(t, []string{"pg_database", "pg_authid", "pg_inherits"}, n.Table, part)
					}
				}
			}
		})
	}
}

// What the rows are asked for beside a read goes by index range as well.
func TestPlan_InspectRowsReadsAThousandRowsAtMost(t *testing.T) {
	t.Parallel()
	for name, c := range filledTables {
		if c.config.Order == ID {
			continue // the order needs no look at the rows
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := inTimeZone(t, database(t, c.sql), "UTC")
			s := bookings(t, pool, c.config)
			e := rowExamination{examination: examination{config: s.config}, layout: s.mustLayout(t)}
			conn := begun(t, pool, settingsSQL)
			queries := []string{e.minusInfinitySQL(), e.newestSQL()}
			if e.kind == kindAtInt {
				queries = append(queries, e.outOfStepSQL())
			}
			for _, sql := range queries {
				var plans []struct{ Plan node }
				printed := pgtest.Value[string](t, simple{conn.Conn}, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql)
				require.NoError(t, json.Unmarshal([]byte(printed), &plans))
				plan := plans[0].Plan
				for _, n := range plan.all() {
					require.NotEqual(t, "Seq Scan", n.Type, sql)
					require.LessOrEqual(t, n.Rows, float64(stepSample)+1, sql)
				}
				require.Less(t, plan.Hit+plan.Read, 2*stepSample, "blocks")
			}
		})
	}
}
