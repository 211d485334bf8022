package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// upcasting is a process with a chain of three versions.
func upcasting(t *testing.T, more string) string {
	return file(t, `processes:
  a:
    source: {table: public.outbox, preset: outbox}
    sink: {stdout: {}}
    start: beginning
    upcast:
      booking.created@1: '.seats = (.count // 1) | del(.count)'
      booking.created@2: '.seats = [range(.seats)]'
`+more)
}

// addAll commits records, in order.
func addAll(t *testing.T, pool *pgxpool.Pool, config outbox.Config, records ...outbox.Record) {
	t.Helper()
	o, err := outbox.New(config)
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return o.Add(t.Context(), tx, records...) }))
}

func TestUpcast_ADaemonDeliversEachVersionAsTheCurrentOne(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
	addAll(t, pool, outbox.Config{},
		outbox.Record{Type: "booking.created", Payload: map[string]any{"count": 2}},
		outbox.Record{Type: "booking.created@2", Payload: map[string]any{"seats": 1}},
		outbox.Record{Type: "booking.created@3", Payload: map[string]any{"seats": []int{7}}},
		outbox.Record{Type: "booking.closed@9", Payload: map[string]any{"count": 1}})
	out := must(t, address, "run", "--drain", "-c", upcasting(t, ""))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{
		`"type":"booking.created@3"`, `"payload":{"seats":[0,1]}`, `"type":"booking.created@3"`, `"payload":{"seats":[0]}`,
		`"type":"booking.created@3"`, `"payload":{"seats":[7]}`, `"type":"booking.closed@9"`, `"payload":{"count":1}`,
	} {
		require.Contains(t, lines[i/2], want)
	}
}

func TestUpcast_AFailureHaltsAndNamesTypeAndVersionAndNoData(t *testing.T) {
	t.Parallel()
	for want, record := range map[string]outbox.Record{
		"upcast booking.created@2: the upcaster failed: jq: range":                                               {Type: "booking.created@2", Payload: map[string]any{"seats": "Smith4711"}},
		"upcast booking.created@1: the upcaster failed: jq: expected an object but got: array":                   {Type: "booking.created@1", Payload: []string{"Smith4711"}},
		"upcast booking.created@4: the current version is 3: this program is older than the producer of the rec": {Type: "booking.created@4", Payload: "Smith4711"},
	} {
		t.Run(record.Type, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 0)
			pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
			next := outbox.Record{Type: "other", Payload: 1}
			addAll(t, pool, outbox.Config{}, next, record, next)

			code, stdout, stderr := do(t, address, "run", "--drain", "-c", upcasting(t, ""))
			require.NotZero(t, code)
			require.Equal(t, 1, strings.Count(stdout, "\n"), "nothing passes the record")
			require.Contains(t, stderr, want)
			require.Contains(t, stderr, "which cannot be read or prepared")
			_, status, _ := do(t, address, "status")
			require.Contains(t, status, want)
			require.NotContains(t, stderr+status, "Smith")

			config := upcasting(t, "    on_poison: dead_letter\n")
			must(t, address, "retry", "a", "--reason=put it aside")
			require.Equal(t, 1, strings.Count(must(t, address, "run", "--drain", "-c", config), "\n"))
			require.Regexp(t, `unprepared +open +upcast booking\.created@`, must(t, address, "dead-letter", "list"))
			require.Contains(t, must(t, address, "dead-letter", "show", "1", "--payload"), "Smith4711", "the dead letter has the row")

			text := `processes: {a: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, upcast: {` +
				`booking.created@1: "{seats: .}", booking.created@2: ".", booking.created@3: ".", booking.created@4: "."}}}`
			require.Contains(t, must(t, address, "dead-letter", "replay", "1", "-c", file(t, text)), `"type":"booking.created@5"`)
		})
	}
}

func TestUpcast_AFaultOfAMappingIsFoundAtItsLine(t *testing.T) {
	t.Parallel()
	for mapping, want := range map[string]string{
		`{a: "."}`:                 `upcast.a: it has no version: write a@1 for records that have none`,
		`{a@1: ".x |"}`:            `upcast."a@1": it is not a jq program`,
		`{a@0: "."}`:               `upcast."a@0": its version is not a number from 1 on: write a@1`,
		`{a@01: "."}`:              `upcast."a@01": its version is not a number from 1 on: write a@1`,
		`{a@1: "nosuch"}`:          `upcast."a@1": it is not a jq program: function not defined: nosuch/0`,
		`{a@1: ".", a@3: "."}`:     `upcast: "a" has a gap: there is no upcaster from version 2, and one from version 3`,
		`{a@1: "import \"a\"; ."}`: `upcast."a@1": it is not a jq program`,
	} {
		config := file(t, "processes: {a: {source: {table: t}, sink: {stdout: {}}, upcast: "+mapping+"}}")
		code, _, stderr := do(t, "", "check", "-c", config)
		require.Equal(t, 2, code, mapping)
		require.Contains(t, stderr, want)
	}
}

func TestUpcast_ASourceWithoutATypeIsRefused(t *testing.T) {
	t.Parallel()
	for source, code := range map[string]int{
		"{table: public.t}":                        2,
		"{table: public.t, columns: {type: kind}}": 0,
		"{table: public.t, preset: debezium}":      0,
	} {
		got, _, stderr := do(t, "", "check", "-c", file(t, "processes: {a: {source: "+source+", sink: {stdout: {}}, upcast: {a@1: .}}}"))
		require.Equal(t, code, got, stderr)
		if code != 0 {
			require.Contains(t, stderr, "upcast: it goes by the type of a record, and the source has none: name the column in source.columns.type, or remove this key")
		}
	}
}

func TestClaims_TheDaemonResolvesThemOrPassesThemOn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1000)
	dir, empty := t.TempDir(), t.TempDir()
	require.NoError(t, claim.Dir(dir).Create())
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox", "--raw"))
	addAll(t, pool, outbox.Config{Raw: true, ClaimAbove: 10, CompressAbove: 10, Claims: claim.Dir(dir)},
		outbox.Record{Type: "a", Payload: map[string]string{"x": long}}, outbox.Record{Type: "a", Payload: 1})
	run := func(name, keys string) (int, string, string) {
		code, stdout, stderr := do(t, address, "run", "--drain", "-c", file(t, "processes: {"+name+
			": {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, start: beginning"+keys+"}}"))
		must(t, address, "process", "forget", name, "--reason=the next one reads the same table")
		return code, stdout, stderr
	}

	code, stdout, stderr := run("passing", "")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"claim-check":"`)
	require.Contains(t, stdout, `"content-encoding":"zstd"`)
	require.NotContains(t, stdout, "long")

	for _, away := range []string{dir + "/away", empty} {
		_, stdout, _ = do(t, address, "doctor", "-c", file(t, "processes: {d: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, claims: "+away+"}}"))
		require.Contains(t, stdout, "the store of claim checks, "+away+", cannot be opened, so records that have one wait")
	}

	code, stdout, stderr = run("resolving", ", compressed: decompress, claims: "+dir)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"payload":{"x":"`+long+`"}`)
	require.NotContains(t, stdout, "claim-check")
	require.NotContains(t, stdout, "content-encoding")

	// Missing objects halt, a directory that is away does not. It is also away if nothing is mounted there.
	for _, claims := range []string{dir + "/away", empty} {
		away := start(t, address, "run", "-c", file(t, "processes: {away: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, start: beginning, "+
			"on_poison: dead_letter, retry: {initial: 10ms}, claims: "+claims+"}}"))
		require.Eventually(t, func() bool {
			_, status, _ := do(t, address, "status", "away")
			return strings.Contains(status, "the store failed")
		}, patience, 50*time.Millisecond)
		away.stop()
		require.NotContains(t, must(t, address, "status", "away"), "halted")
		require.Equal(t, 0, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.dead_letter"))
		must(t, address, "process", "forget", "away", "--reason=the next one reads the same table")
	}

	var names []string
	require.NoError(t, claim.Dir(dir).List(t.Context(), func(o claim.Object) error { names = append(names, o.Name); return nil }))
	require.Len(t, names, 1)
	require.NoError(t, claim.Dir(dir).Delete(t.Context(), names[0]))
	code, stdout, stderr = run("missing", ", compressed: decompress, claims: "+dir)
	require.NotZero(t, code)
	require.Empty(t, stdout, "nothing passes the record")
	require.Contains(t, stderr, "resolve its claim check "+names[0]+": the object is missing from its store")
}

// A payload that would be larger than max_record_bytes once it is decompressed.
func TestDecompress_ABombHalts(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox", "--raw"))
	addAll(t, pool, outbox.Config{Raw: true, CompressAbove: 10}, outbox.Record{Type: "a", Payload: make([]byte, 100_000)})
	config := file(t, "processes: {a: {source: {table: public.outbox, preset: outbox, max_record_bytes: 10000}, sink: {stdout: {}}, start: beginning, compressed: decompress}}")
	code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
	require.NotZero(t, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "decompress its payload: decompressed, it is too large: it may have 10000 bytes")
}

// A bytea may hold anything. The upcaster needs JSON, so the process halts there until the row is corrected.
func TestUpcast_APayloadThatIsNotJSONHaltsUntilItIsCorrected(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox", "--raw"))
	addAll(t, pool, outbox.Config{Raw: true},
		outbox.Record{Type: "booking.created", Payload: map[string]any{"count": 1}},
		outbox.Record{Type: "booking.created", Payload: []byte(`{"count": Smith4711`)},
		outbox.Record{Type: "booking.created", Payload: map[string]any{"count": 3}})
	config := upcasting(t, "")
	code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code, stderr)
	require.Equal(t, 1, strings.Count(stdout, "\n"), "nothing passes the record")
	_, status, _ := do(t, address, "status")
	for _, told := range []string{stderr, status} {
		require.Contains(t, told, "upcast booking.created@1: its payload is not JSON")
		require.NotContains(t, told, "Smith")
	}

	pgtest.Exec(t, pool, `UPDATE public.outbox SET payload = convert_to('{"count": 2}', 'UTF8') WHERE id = 2`)
	must(t, address, "retry", "a", "--reason=the row is corrected")
	out := must(t, address, "run", "--drain", "-c", config)
	require.Regexp(t, `^.*"payload":{"seats":\[0,1\]}.*\n.*"payload":{"seats":\[0,1,2\]}.*\n$`, out)
}

// What docs/producers.md warns of: a condition on the type without its version is not true, and nothing reports that.
func TestUpcast_AStatementSeesTheTypeWithItsVersion(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	execute(t, pool, must(t, address, "migrate", "outbox"))
	execute(t, pool, "CREATE TABLE public.seen (how text, type text); INSERT INTO public.outbox (type, payload) VALUES ('a', '{}')")
	must(t, address, "run", "--drain", "-c", file(t, `
processes:
  a:
    source: {table: public.outbox, preset: outbox}
    start: beginning
    upcast: {a@1: .}
    sink:
      sql:
        statement:
          - INSERT INTO public.seen SELECT 'whole', @type WHERE @type = 'a'
          - INSERT INTO public.seen SELECT 'name', @type WHERE split_part(@type, '@', 1) = 'a'
`))
	require.Equal(t, "name a@2", text(t, pool, "SELECT string_agg(concat_ws(' ', how, type), ', ') FROM public.seen"))
}
