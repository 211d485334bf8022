package daemon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const contract = `# dispatcher.yaml — ${NAME} reads the environment, ${file:/run/secrets/x} a file; unknown keys are errors that show the line
database: ${DATABASE_URL}
schema: public                    # of the cursor tables
processes:
  booking_sms:
    source:
      table: bookings             # schema-qualified if need be
      order: created_at           # or id
      columns: {id: id, created_at: created_at, key: customer_id, type: "", headers: "", payload: ""}  # payload "" = the row as JSON
      where: "status = 'confirmed'"
      latency: 5ms
    sink:
      webhook: {url: "https://sms.example/send", timeout: 10s, secret: ${SMS_SECRET}}
    start: beginning              # beginning, end, or a position: only when the cursor is created
    batch: 500
    checkpoint: 1
    poll: 200ms                   # longest idle wait; shorter after work
    retry: {initial: 100ms, max: 1m, jitter: 20%, attempts: 0}   # 0 = a transient error is retried for ever
    on_poison: halt               # halt | dead_letter
    on_timeout: retry             # retry | halt: what a timeout (outcome unknown) means to this receiver
`

func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

var secrets = map[string]string{
	"DATABASE_URL": "postgres://u:secret@db.example/app?sslmode=require",
	"SMS_SECRET":   "a-secret-of-thirty-two-bytes-xxx",
}

func parse(text string) (daemon.Config, error) {
	return daemon.Parse("dispatcher.yaml", []byte(text), environment(secrets), kinds)
}

func TestParse_TheContract(t *testing.T) {
	t.Parallel()
	config, err := parse(contract)
	require.NoError(t, err)
	require.Equal(t, daemon.Config{
		Database: secrets["DATABASE_URL"],
		Schema:   "public",
		Processes: []daemon.Process{{
			Name: "booking_sms",
			Source: table.Config{
				Table:   "bookings",
				Order:   table.CreatedAt,
				Columns: table.Columns{ID: "id", CreatedAt: "created_at", Key: "customer_id"},
				Where:   "status = 'confirmed'",
				Latency: 5 * time.Millisecond,
			},
			Sink: daemon.Sink{Kind: "webhook", Config: &webhook.Config{
				URL: "https://sms.example/send", Timeout: 10 * time.Second, Secret: secrets["SMS_SECRET"],
			}},
			Config: processor.Config{
				Start:      processor.Beginning,
				Batch:      500,
				Checkpoint: 1,
				Poll:       200 * time.Millisecond,
				Retry:      processor.Retry{Initial: 100 * time.Millisecond, Max: time.Minute, Jitter: 20},
			},
		}},
	}, config)
}

func TestParse_ShortestFile(t *testing.T) {
	t.Parallel()
	config, err := parse("processes: {b: {source: {table: t}, sink: {stdout: {}}}, a: {source: {table: t}, sink: {stdout: }}}")
	require.NoError(t, err)
	require.Empty(t, config.Database)
	require.Equal(t, []string{"b", "a"}, config.Names(), "the order of the file")
	require.Equal(t, daemon.Process{
		Name: "b", Source: table.Config{Table: "t"}, Sink: daemon.Sink{Kind: "stdout", Config: &stdout.Config{}},
	}, config.Processes[0])
}

func TestParse_Start(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cursor.Position{
		"beginning": processor.Beginning, "end": processor.End, "int:00000000000000000042": "int:00000000000000000042",
	} {
		config, err := parse("processes: {a: {source: {table: t}, sink: {stdout: {}}, start: " + text + "}}")
		require.NoError(t, err)
		require.Equal(t, want, config.Processes[0].Start)
	}
}

// 0 is the zero value, which means the default.
func TestParse_AJitterOfNothingIsNotTheDefault(t *testing.T) {
	t.Parallel()
	config, err := parse(process("retry: {jitter: 0%}"))
	require.NoError(t, err)
	require.Equal(t, processor.NoJitter, config.Processes[0].Retry.Jitter)
	config, err = parse(process("retry: {attempts: 3}"))
	require.NoError(t, err)
	require.Equal(t, processor.Retry{Attempts: 3}, config.Processes[0].Retry)
}

// process is a file with one process that has these lines besides.
func process(lines ...string) string {
	return "processes:\n  a:\n    source: {table: t}\n    sink: {stdout: {}}\n    " + strings.Join(lines, "\n    ") + "\n"
}

func TestParse_BadInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"proceses: {}", `1:1: the key "proceses" is not known: did you mean processes? The keys here are database, schema, listen_token, processes`},
		{process("where: amount > 0"), `5:5: processes.a: the key "where" is not known: did you mean source.where? The keys here are source, sink, `},
		{process("payload: body"), `5:5: processes.a: the key "payload" is not known: did you mean source.columns.payload? `},
		{process("snik: {}"), `5:5: processes.a: the key "snik" is not known: did you mean sink? `},
		{"schema: public", `1:1: the key "processes" is missing: add it, as in processes: {my_process: {source: {…}, sink: {…}}}`},
		{"processes: {}", "1:1: processes: there is no process: add one"},
		{"database: ${NOPE}\nprocesses: {}", "1:11: database: the environment has no variable NOPE: set it, or write $${NOPE} for the text itself"},
		{"database: 'postgres://u:x/y@h:p/d'\n", "1:1: database: the connection string cannot be read: write it as postgres://user:password@host:5432/database, and percent-encode what is special in the password"},
		{"database: 'postgers://u:p@h/d?sslmode=disable'\n", "1:1: database: the connection string is a url of another kind: write it as postgres://user:password@host:5432/database, and percent-encode what is special in the password"},
		{"processes: {a: {source: {table: t}, sink: stdout}}", `1:37: processes.a.sink: expected keys with values, as in sink: {stdout: {}} or sink: {webhook: {url: "https://…"}}: the keys here are webhook, rabbitmq, nats, kafka, pubsub, sql, exec, stdout`},
		{"processes: {a: {source: t, sink: {stdout: {}}}}", "1:17: processes.a.source: expected keys with values: the keys here are table, order, preset, columns, where, latency"},
		{"database: 'postgres://u:p@h/d?sslmode=maybe'\n", "1:1: database: the connection string cannot be read (sslmode is invalid): write it as postgres://user:password@host:5432/database, and percent-encode what is special in the password"},
		{"schema: " + strings.Repeat("x", 64), "1:1: schema: cursor store: schema " + `"` + strings.Repeat("x", 64) + `" has more than the 63 bytes that PostgreSQL keeps of a name`},
		{process("batch: many"), `5:12: processes.a.batch: "many" is not a whole number: write one from 1 to 10000`},
		{process("batch: 0"), `5:12: processes.a.batch: "0" is out of bounds: write a number from 1 to 10000`},
		{process("batch: 10", "checkpoint: 11"), `6:17: processes.a.checkpoint: "11" is out of bounds: write a number from 1 to 10`},
		{process("checkpoint: 501"), `5:17: processes.a.checkpoint: "501" is out of bounds: write a number from 1 to 500`},
		{process("poll: 10 parsecs"), `5:11: processes.a.poll: "10 parsecs" is not a duration: write a number with a unit, such as 200ms, 5s or 1m30s`},
		{process("polls: 5s"), `5:5: processes.a: the key "polls" is not known: did you mean poll? The keys here are source, `},
		{process("claims: s3:/bucket"), "5:5: processes.a.claims: the URL of a store has two slashes after its scheme: write s3://…, or an absolute path for a directory"},
		{process("upcast: {a@1: ., a@3: .}"), `5:5: processes.a.upcast: "a" has a gap: `},
		{"processes:\n  a@shadow:\n    source: {table: t}\n    sink: {stdout: {}}\n    shadow: {of: b, table: public.calls}", `5:5: processes."a@shadow".shadow: of: there is no process "b" in this file`},
		{process("poll: 4ms"), `5:11: processes.a.poll: "4ms" is out of bounds: write a duration from 5ms to 1m0s`},
		{process("retry: {initial: 5s, max: 1s}"), `5:31: processes.a.retry.max: "1s" is out of bounds: write a duration from 5s to 24h0m0s`},
		{process("retry: {max: 50ms}"), `5:18: processes.a.retry.max: "50ms" is out of bounds: write a duration from 100ms to 24h0m0s`},
		{process("retry: {jitter: 20}"), `5:21: processes.a.retry.jitter: "20" is not a percentage: write a whole number from 0% to 100%, such as 20%`},
		{process("limit: 50"), `5:12: processes.a.limit: "50" is not a rate: write a whole number from 1 to 1000000, and a unit: 50/s, 100/m or 1000/h`},
		{process("limit: 0/s"), `5:12: processes.a.limit: "0/s" is not a rate`},
		{process("breaker: {cooldown: 5s}"), `5:5: processes.a.breaker: the key "failures" is missing: add it, as in failures: 10`},
		{process("dead_letter_run: 3"), `5:5: processes.a.dead_letter_run: it limits dead letters, and on_poison: dead_letter is not set`},
		{process("breaker: {failures: 3}", "retry: {attempts: 3}"), `2:3: processes.a: process "a": breaker.failures must be above retry.attempts (3), got 3`},
		{process("on_poison: ignore"), `5:16: processes.a.on_poison: "ignore" is not known here: write halt or dead_letter`},
		{process("on_timeout: skip"), `5:17: processes.a.on_timeout: "skip" is not known here: write retry or halt`},
		{process("start: at.uuid:2026-11-28"), `5:5: processes.a.start: position "at.uuid:2026-11-28" is malformed: a position looks like "at.uuid:`},
		{process("start: now"), "5:5: processes.a.start: this is not a place to start: write beginning, end (send only what comes from now on), or a position"},
		{"processes: {a: {source: {table: t, where: {status: new}}, sink: {stdout: {}}}}", `1:36: processes.a.source.where: expected a single value, as in where: "status = 'confirmed'"`},
		{"processes: {a: {source: {table: t, where: \"x = '${SMS_SECRET}'\"}, sink: {stdout: {}}}}", "1:36: processes.a.source.where: a condition must not have a reference: doctor, grants, the log and the audit show it to people who must not know a secret. Write the value out, or compare with a table that has it"},
		{process("start: ''"), "5:5: processes.a.start: say where: beginning, end, or a position"},
		{process() + "  a: {source: {table: t}, sink: {stdout: {}}}", `6:3: processes: the key "a" is here twice: keep one`},
		{"processes: {a: {sink: {stdout: {}}}}", `1:13: processes.a: the key "source" is missing: add it, as in source: {table: public.bookings}`},
		{"processes: {a: {source: {table: t}}}", `1:13: processes.a: the key "sink" is missing: add it, as in sink: {webhook: {url: "https://…"}}`},
		{"processes: {a: {source: {table: t}, sink: {}}}", "1:37: processes.a.sink: there is no sink: write webhook, "},
		{"processes: {a: {source: {table: t}, sink: {stdout: {}, sql: {statement: x}}}}", "1:37: processes.a.sink: there are several sinks (stdout, sql): keep one"},
		{"processes: {a: {source: {table: t}, sink: {stdout: {path: x}}}}", `1:53: processes.a.sink.stdout: the key "path" is not known: there are no keys here, write {}`},
		{"processes: {a: {source: {table: a.b.c}, sink: {stdout: {}}}}", "1:17: processes.a.source: source: table: name a.b.c has more than a schema and a name"},
		{"processes: {a: {source: {table: t, order: name}, sink: {stdout: {}}}}", `1:43: processes.a.source.order: "name" is not known here: write created_at or id`},
		{"processes: {a: {source: {table: t, latency: 0s}, sink: {stdout: {}}}}", `1:45: processes.a.source.latency: "0s" is out of bounds: write a duration from 1µs to 1m0s`},
		{"processes: {a: {source: {table: t}, sink: {webhook: {url: ftp://h}}}}", "1:44: processes.a.sink.webhook: configure webhook sink: url: is neither http:// nor https://"},
		{"processes: {a: {source: {table: t}, sink: {sql: {statement: SELECT 1, rows: at_least 2}}}}", "1:77: processes.a.sink.sql.rows: \"at_least 2\" is not known here: write at_least 1"},
		{"processes: {a: {source: {table: t}, sink: {sql: {statement: 'SELECT @idd'}}}}", "1:50: processes.a.sink.sql.statement: statement 1: line 1, column 8: there is no argument @idd"},
		{"processes: {a: {source: {table: t}, sink: {sql: {statement: [SELECT 1, 'SELECT 2; SELECT 3']}}}}", "1:50: processes.a.sink.sql.statement: statement 2 holds several commands: make it a list, one statement an item"},
		{"processes: {'': {source: {table: t}, sink: {stdout: {}}}}", `1:13: processes."": the name of a process must not be empty, and must not begin or end with a space`},
		{"processes: {" + strings.Repeat("é", 32) + ": {source: {table: t}, sink: {stdout: {}}}}", "1:13: processes.\"" + strings.Repeat("é", 32) + `": the name has 64 bytes: shorten it to 63`},
		{`processes: {"a\nb": {source: {table: t}, sink: {stdout: {}}}}`, `1:13: processes."a\nb": the name has a character that cannot be printed: remove it`},
	} {
		_, err := parse(c.text)
		require.Error(t, err, c.text)
		first, _, _ := strings.Cut(err.Error(), "\n")
		require.True(t, strings.HasPrefix(first, "dispatcher.yaml:"+c.want), "%s\nwant %s\ngot  %s", c.text, c.want, first)
	}
}

func TestParse_AllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse(process("batch: many", "poll: 5", "tries: 3") + "  b: {source: {table: t}}\n")
	require.Error(t, err)
	for _, place := range []string{":5:12:", ":6:11:", ":7:5:", ":8:3:"} {
		require.ErrorContains(t, err, "dispatcher.yaml"+place)
	}
}

func TestParse_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(
		"${DATABASE_URL}", "postgres://u:CANARY@h:port/d",
		"https://sms.example/send", "sms.example/CANARY",
		"${SMS_SECRET}", "CANARY, headers: {Authorization: CANARY, Content-Type: CANARY}, tiemout: CANARY",
		"batch: 500", "batch: CANARY5",
	).Replace(contract)
	_, err := parse(text)
	require.ErrorContains(t, err, "database: ***")
	require.ErrorContains(t, err, "CANARY5", "what is no secret is shown")
	require.NotContains(t, strings.ReplaceAll(err.Error(), "CANARY5", ""), "CANARY")
}

func TestParse_AStatementOfTheSQLSinkIsATextOrAList(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string][]string{
		"SELECT 1": {"SELECT 1"}, "&s SELECT 1": {"SELECT 1"}, "[SELECT 1, 'SELECT ${V}']": {"SELECT 1", "SELECT 2"},
	} {
		file := "processes: {a: {source: {table: t}, sink: {sql: {statement: " + statement + "}}}}"
		config, err := daemon.Parse("f.yaml", []byte(file), environment(map[string]string{"V": "2"}), kinds)
		require.NoError(t, err, statement)
		require.Equal(t, want, config.Processes[0].Sink.Config.(*sql.Config).Statements, statement)
	}
}

// What a package says about a value may quote it: not if it came by a reference.
func TestParse_ShowsNotWhatAReferenceStandsFor(t *testing.T) {
	t.Parallel()
	env := environment(map[string]string{"V": "a b; SELECT @CANARY"})
	for _, text := range []string{
		"processes: {a: {source: {table: '${V}'}, sink: {stdout: {}}}}",
		"processes: {a: {source: {table: t, columns: {key: 'x ${V}'}}, sink: {stdout: {}}}}",
		"processes: {a: {source: {table: t}, sink: {sql: {statement: 'SELECT ${V}'}}}}",
		"schema: '" + strings.Repeat("x", 60) + "${V}'\nprocesses: {a: {source: {table: t}, sink: {stdout: {}}}}",
	} {
		_, err := daemon.Parse("f.yaml", []byte(text), env, kinds)
		require.ErrorContains(t, err, "refused with the values of its references, which are not shown here: write the values in place of the references to see why")
		require.NotContains(t, err.Error(), "CANARY", text)
	}
}

// A password with special characters falls to pieces, and the driver names one.
func TestParse_ShowsNoPieceOfAConnectionString(t *testing.T) {
	t.Parallel()
	for _, database := range []string{
		"host=h user=u password=two CANARY", "host=h password='two CANARY", "postgres://u@h/d?password=x&CANARY", "postgres://h/d?pool_max_conns=CANARY",
		"postgres://h/d?service=CANARY", "postgres://h/d?sslmode=verify-full&sslrootcert=%2FCANARY", "host=h sslcertmode=CANARY", "postgres://h/d?%0CANARY",
	} {
		env := environment(map[string]string{"DATABASE_URL": database})
		_, err := daemon.Parse("f.yaml", []byte("database: ${DATABASE_URL}\n"+process()), env, kinds)
		if strings.Contains(database, "sslrootcert") {
			require.ErrorContains(t, err, "f.yaml:1:1: database: the file that sslrootcert of the connection string names is not there", database)
		} else {
			require.ErrorContains(t, err, "f.yaml:1:1: database: the connection string cannot be read", database)
		}
		require.NotContains(t, err.Error(), "CANARY", database)
	}
}

// Whatever becomes of a file on its way, no error shows a secret in it, and none
// is without a place.
func TestParse_ShowsNoSecretOfABrokenFile(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("${DATABASE_URL}", "postgres://u:CANARY@h/d", "https://sms.example/send", "https://sms.example/CANARY",
		"${SMS_SECRET}", "whsec_CANARY").Replace(contract)
	rapid.Check(t, func(t *rapid.T) {
		lines := strings.SplitAfter(text, "\n")
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			line := &lines[rapid.IntRange(0, len(lines)-1).Draw(t, "line")]
			at := rapid.IntRange(0, len(*line)).Draw(t, "at")
			end := at
			if !strings.Contains(*line, "CANARY") { // without its key it might be anything
				end = min(len(*line), at+rapid.IntRange(0, 12).Draw(t, "gone"))
			}
			sign := rapid.SampledFrom([]string{"", " ", "\n", ":", ": ", "{", "}", "[", "'", `"`, "- ", "#", ",", "\t", "|", "? "}).Draw(t, "sign")
			*line = (*line)[:at] + sign + (*line)[end:]
		}
		broken := strings.Join(lines, "")
		if _, err := parse(broken); err != nil {
			require.NotContains(t, err.Error(), "CANARY", broken)
			require.Regexp(t, `^dispatcher.yaml:\d+:\d+: `, err.Error())
		}
	})
}

// The bounds that the file is held to, where its lines are known, are those of
// the packages that take the values.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"batch: 10000", "batch: 1", "batch: 500", "checkpoint: 500", "poll: 5ms", "poll: 1m",
		"retry: {initial: 1ms}", "retry: {initial: 24h}", "retry: {max: 24h}", "retry: {jitter: 0%}", "retry: {jitter: 100%}", "retry: {attempts: 1000000000}",
		"limit: 1/h", "limit: 1000000/s", "breaker: {failures: 1}", "breaker: {failures: 1000000000, cooldown: 24h}", "on_poison: dead_letter",
		"on_poison: dead_letter\n    dead_letter_run: 1000000000",
	} {
		_, err := parse(process(line))
		require.NoError(t, err, line)
	}
	for _, sink := range []string{"timeout: 1ms", "timeout: 1h"} {
		_, err := parse("processes: {a: {source: {table: t, latency: 1m}, sink: {webhook: {url: 'http://h', " + sink + "}}}}")
		require.NoError(t, err, sink)
	}
	// Beyond them, the packages refuse too.
	base := processor.Config{Process: "a", Source: &table.Source{}, Dispatch: processor.Each(nil)}
	store, err := cursor.NewStore(nil, cursor.Config{})
	require.NoError(t, err)
	base.Store = store
	_, err = processor.New(base)
	require.NoError(t, err)
	for name, change := range map[string]func(*processor.Config){
		"batch":      func(c *processor.Config) { c.Batch = 10_001 },
		"checkpoint": func(c *processor.Config) { c.Checkpoint = 501 },
		"poll":       func(c *processor.Config) { c.Poll = time.Minute + 1 },
		"poll low":   func(c *processor.Config) { c.Poll = 5*time.Millisecond - 1 },
		"initial":    func(c *processor.Config) { c.Retry.Initial = time.Millisecond - 1 },
		"max":        func(c *processor.Config) { c.Retry.Max = 24*time.Hour + 1 },
		"jitter":     func(c *processor.Config) { c.Retry.Jitter = 101 },
		"limit":      func(c *processor.Config) { c.Limit = processor.Limit{Records: 1, Per: time.Hour + 1} },
		"cooldown":   func(c *processor.Config) { c.Breaker = processor.Breaker{Failures: 1, Cooldown: 24*time.Hour + 1} },
	} {
		c := base
		change(&c)
		_, err := processor.New(c)
		require.Error(t, err, name)
	}
	_, err = table.New(nil, table.Config{Table: "t", Latency: time.Minute + 1})
	require.Error(t, err)
	_, err = table.New(nil, table.Config{Table: "t", MaxRecordBytes: 512<<20 + 1})
	require.Error(t, err)
	_, err = webhook.New(webhook.Config{URL: "http://h", Timeout: time.Hour + 1})
	require.Error(t, err)
}
