package daemon

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Load reads a configuration file; "-" is standard input. Every error is a
// *UsageError, and names all that is wrong with the file. kinds are the sinks that the file may have.
func Load(path string, stdin io.Reader, env yamlfile.Environment, kinds []sinks.Spec) (Config, error) {
	name, text, err := path, []byte(nil), error(nil)
	if path == "-" {
		name = "stdin"
		text, err = bounded.ReadAll(stdin)
	} else {
		text, err = bounded.Read(path)
	}
	if err != nil {
		return Config{}, &UsageError{fmt.Errorf("read the configuration: %w; name a file that exists and that this user may read", err)}
	}
	config, err := Parse(name, text, env, kinds)
	if err != nil {
		return Config{}, &UsageError{err}
	}
	if path != "-" {
		config.file = path
	}
	return config, nil
}

// Parse reads the text of the file called name.
func Parse(name string, text []byte, env yamlfile.Environment, kinds []sinks.Spec) (Config, error) {
	file := yamlfile.Parse(name, text, env)
	if err := file.Err(); err != nil {
		return Config{}, err
	}
	renewal := &renewal{name: name, text: text, env: env, kinds: kinds, once: map[string]bool{}, users: make(chan string, 1)}
	file.ReadFilesBy(renewal.readFirst)
	config := parseFile(file.Root(), kinds)
	if file.Root().FileTexts() != nil {
		config.renewal = renewal
	}
	config.secretFiles, config.trustedFiles = file.SecretFiles(), file.TrustedFiles()
	if file.HoldsSecrets() {
		config.secretFiles = append(config.secretFiles, name)
	}
	return config, file.Err()
}

// keysOfFile are those of its first level.
var keysOfFile = []string{"database", "schema", "processes"}

func parseFile(root yamlfile.Node, kinds []sinks.Spec) (c Config) {
	m := root.Mapping(keysOfFile...)
	m.Read("database", func(n yamlfile.Node) { c.Database, c.databaseFiles = parseDatabase(n), n.FileTexts() })
	m.Read("schema", func(n yamlfile.Node) { c.Schema = parseSchema(n) })
	if n, ok := m.Need("processes", "processes: {my_process: {source: {…}, sink: {…}}}"); ok {
		c.Processes = parseProcesses(n, c.Schema, kinds)
	}
	return c
}

func parseDatabase(n yamlfile.Node) string {
	database := n.Secret()
	if !n.Sound() {
		return ""
	}
	if database == "" {
		n.Fault("it is empty: give a connection string, or remove the key and set DATABASE_URL")
		return ""
	}
	if _, err := poolConfig(database, 0); err != nil {
		n.Fault("%v", err)
	}
	return database
}

func parseSchema(n yamlfile.Node) string {
	schema := n.Text()
	if _, err := cursor.NewStore(nil, cursor.Config{Schema: schema}); err != nil {
		n.Refuse(err)
		return ""
	}
	return schema
}

func parseProcesses(n yamlfile.Node, schema string, kinds []sinks.Spec) []Process {
	m := n.AnyMapping()
	if len(m.Names()) == 0 {
		n.Fault("there is no process: add one")
	}
	var processes []Process
	for _, name := range m.Names() {
		n, _ := m.Get(name)
		processes = append(processes, parseProcess(n, name, schema, kinds))
	}
	faultShared(processes, func(name string) yamlfile.Node {
		n, _ := m.Get(name)
		return n
	})
	return processes
}

func parseProcess(n yamlfile.Node, name, schema string, kinds []sinks.Spec) Process {
	p := Process{Name: name, Retry: processor.Retry{Jitter: defaultJitter}}
	if err := checkName(name); err != nil {
		n.Fault("%v", err)
	}
	m := n.Mapping("source", "sink", "start", "batch", "checkpoint", "poll", "retry", "limit", "breaker", "on_poison", "dead_letter_run", "on_timeout")
	if n, ok := m.Need("source", "source: {table: public.bookings}"); ok {
		p.Source = parseSource(n)
	}
	if n, ok := m.Need("sink", `sink: {webhook: {url: "https://…"}}`); ok {
		p.Sink = readSink(n, kinds)
	}
	m.Read("start", func(n yamlfile.Node) { p.Start = parseStart(n) })
	m.Read("batch", func(n yamlfile.Node) { p.Batch = n.Int(1, maxBatch) })
	m.Read("checkpoint", func(n yamlfile.Node) { p.Checkpoint = parseCheckpoint(n, p.Batch) })
	m.Read("poll", func(n yamlfile.Node) { p.Poll = n.Duration(minPoll, maxPoll) })
	m.Read("retry", func(n yamlfile.Node) { p.Retry = parseRetry(n) })
	m.Read("limit", func(n yamlfile.Node) { p.Limit = parseLimit(n) })
	m.Read("breaker", func(n yamlfile.Node) { p.Breaker = parseBreaker(n) })
	m.Read("on_poison", func(n yamlfile.Node) { p.DeadLetter = n.OneOf("halt", "dead_letter") == "dead_letter" })
	m.Read("dead_letter_run", func(n yamlfile.Node) { p.DeadLetterRun = parseLetterRun(n, p.DeadLetter) })
	m.Read("on_timeout", func(n yamlfile.Node) { p.HaltOnTimeout = n.OneOf("retry", "halt") == "halt" })
	if p.Sink.Config != nil && p.Sink.window() > max(p.Checkpoint, 1) {
		n.Fault("a window of %d needs a checkpoint of at least as many: so many records may be sent again after a fault", p.Sink.window())
	}
	if p.files = n.FileTexts(); n.Sound() {
		checkProcess(n, p, schema)
	}
	return p
}

// checkName keeps out what would be cut off, unreadable in a log, or taken for a flag in a
// command.
func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return errors.New("the name of a process is not empty, and neither begins nor ends with a space")
	case len(name) > maxNameBytes:
		return fmt.Errorf("the name has %d bytes: shorten it to %d", len(name), maxNameBytes)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name has a character that cannot be printed: remove it")
	case !begins(name):
		return fmt.Errorf("the name of a process begins with a letter, a digit or _, since commands take a - for a flag: "+
			"give it another one; a cursor that has this one follows with `ordered-dispatcher process rename -- %s NEW`", visible.Shell(name))
	default:
		return nil
	}
}

// begins reports whether the first character is one that a name may begin with.
func begins(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return first == '_' || unicode.IsLetter(first) || unicode.IsDigit(first)
}

// checkProcess has the packages check what they are given: nothing that they
// would refuse at the start passes here.
func checkProcess(n yamlfile.Node, p Process, schema string) {
	store, err := cursor.NewStore(nil, cursor.Config{Schema: schema})
	if err != nil {
		return // reported at the schema
	}
	if _, _, err := p.build(dependencies{store: store, stdout: io.Discard}); err != nil {
		n.Refuse(err)
	}
}

func parseSource(n yamlfile.Node) (c table.Config) {
	m := n.Mapping("table", "order", "columns", "where", "latency", "max_record_bytes")
	if n, ok := m.Need("table", "table: public.bookings"); ok {
		c.Table = n.Text()
	}
	m.Read("order", func(n yamlfile.Node) {
		c.Order = table.Order(n.OneOf(string(table.CreatedAt), string(table.ID)))
	})
	m.Read("columns", func(n yamlfile.Node) { c.Columns = parseColumns(n) })
	m.Read("where", func(n yamlfile.Node) { c.Where = parseWhere(n) })
	m.Read("latency", func(n yamlfile.Node) { c.Latency = n.Duration(minLatency, maxLatency) })
	m.Read("max_record_bytes", func(n yamlfile.Node) { c.MaxRecordBytes = n.Int(1, maxRecordBytes) })
	if n.Sound() {
		if _, err := table.New(nil, c); err != nil {
			n.Refuse(err)
		}
	}
	return c
}

func parseColumns(n yamlfile.Node) (c table.Columns) {
	m := n.Mapping("id", "created_at", "key", "type", "headers", "payload")
	for name, column := range map[string]*string{
		"id": &c.ID, "created_at": &c.CreatedAt, "key": &c.Key, "type": &c.Type, "headers": &c.Headers, "payload": &c.Payload,
	} {
		m.Read(name, func(n yamlfile.Node) { *column = n.Text() })
	}
	return c
}

func parseWhere(n yamlfile.Node) string {
	if n.IsMapping() {
		n.Fault(`a condition is a text of SQL, as in where: "status = 'confirmed'"`)
		return ""
	}
	condition := n.Text()
	if len(n.References()) > 0 {
		n.Fault("a condition takes no reference: doctor, grants, the log and the audit show it to people who are not to know a secret. " +
			"Write the value out, or compare with a table that has it")
		return ""
	}
	return condition
}

func parseStart(n yamlfile.Node) cursor.Position {
	switch start := n.Text(); start {
	case "":
		if n.Sound() {
			n.Fault("say where: beginning, end, or a position")
		}
		return ""
	case "beginning":
		return processor.Beginning
	case "end":
		return processor.End
	default:
		if n.Sound() && !table.IsPosition(cursor.Position(start)) {
			n.Fault("this is no place to start: write beginning, end (send only what comes from now on), or a position as status shows it")
			return ""
		}
		return cursor.Position(start)
	}
}

func parseCheckpoint(n yamlfile.Node, batch int) int {
	if batch == 0 {
		batch = defaultBatch
	}
	return n.Int(1, batch)
}

func parseRetry(n yamlfile.Node) processor.Retry {
	r := processor.Retry{Jitter: defaultJitter}
	m := n.Mapping("initial", "max", "jitter", "attempts")
	m.Read("initial", func(n yamlfile.Node) { r.Initial = n.Duration(minRetryDelay, maxRetryDelay) })
	m.Read("max", func(n yamlfile.Node) { r.Max = n.Duration(max(minRetryDelay, r.Initial), maxRetryDelay) })
	m.Read("jitter", func(n yamlfile.Node) { r.Jitter = n.Percent() })
	m.Read("attempts", func(n yamlfile.Node) { r.Attempts = n.Int(0, maxAttempts) })
	return r
}

func parseLetterRun(n yamlfile.Node, deadLetter bool) int {
	if !deadLetter {
		n.Fault("it bounds the records that on_poison: dead_letter puts aside: set that too, or remove this key")
	}
	return n.Int(1, maxAttempts)
}

func parseLimit(n yamlfile.Node) processor.Limit {
	records, unit := n.Rate()
	return processor.Limit{Records: records, Per: unit}
}

func parseBreaker(n yamlfile.Node) (b processor.Breaker) {
	m := n.Mapping("failures", "cooldown")
	if n, ok := m.Need("failures", "failures: 10"); ok {
		b.Failures = n.Int(1, maxAttempts)
	}
	m.Read("cooldown", func(n yamlfile.Node) { b.Cooldown = n.Duration(minRetryDelay, maxCooldown) })
	return b
}
