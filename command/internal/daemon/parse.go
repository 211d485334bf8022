package daemon

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Load reads a configuration file; "-" is standard input. Every error is a *UsageError, and names all faults of the
// file. kinds are what the file may have.
func Load(path string, stdin io.Reader, env yamlfile.Environment, kinds Kinds) (Config, error) {
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

// Parse reads a configuration from text. name is the name of the file.
func Parse(name string, text []byte, env yamlfile.Environment, kinds Kinds) (Config, error) {
	file := yamlfile.Parse(name, text, env)
	if err := file.Err(); err != nil {
		return Config{}, err
	}
	set := newStoreSet(kinds.Stores)
	renewal := &renewal{name: name, text: text, env: env, kinds: kinds, stores: set, once: map[string]bool{}, users: make(chan string, 1)}
	file.ReadFilesBy(renewal.readFirst)
	config := parseFile(file.Root(), kinds.Sinks, set)
	if file.Root().FileTexts() != nil {
		config.renewal = renewal
	}
	config.secretFiles, config.trustedFiles = file.SecretFiles(), file.TrustedFiles()
	if file.HoldsSecrets() {
		config.secretFiles = append(config.secretFiles, name)
	}
	return config, file.Err()
}

func parseFile(root yamlfile.Node, kinds []sinks.Spec, set *storeSet) (c Config) {
	c.stores = set
	root.Decode(&c, yamlfile.By{
		"database":     func(n yamlfile.Node) { c.Database, c.databaseFiles = parseDatabase(n), n.FileTexts() },
		"schema":       func(n yamlfile.Node) { c.Schema = parseSchema(n) },
		"listen_token": func(n yamlfile.Node) { c.ListenToken = parseToken(n) },
		"processes":    func(n yamlfile.Node) { c.Processes = parseProcesses(n, c.Schema, kinds, set) },
		"retention":    func(n yamlfile.Node) { c.Rules = parseRules(n, c.Processes, set) },
		"notify":       func(n yamlfile.Node) { c.Notify = parseNotify(n, c.Names()) },
		"admin":        func(n yamlfile.Node) { c.Admin = parseAdmin(n) },
	})
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

func parseToken(n yamlfile.Node) string {
	token := n.Secret()
	if err := checkToken(token); err != nil && n.Sound() {
		n.Fault("%v", err)
	}
	return token
}

func parseSchema(n yamlfile.Node) string {
	schema := n.Text()
	if _, err := cursor.NewStore(nil, cursor.Config{Schema: schema}); err != nil {
		n.Refuse(err)
		return ""
	}
	return schema
}

func parseProcesses(n yamlfile.Node, schema string, kinds []sinks.Spec, set *storeSet) []Process {
	m := n.AnyMapping()
	if len(m.Names()) == 0 {
		n.Fault("there is no process: add one")
	}
	var processes []Process
	for _, name := range m.Names() {
		n, _ := m.Get(name)
		processes = append(processes, parseProcess(n, name, schema, kinds, set))
	}
	node := func(name string) yamlfile.Node {
		n, _ := m.Get(name)
		return n
	}
	parseShadows(processes, node)
	faultShared(processes, node)
	return processes
}

func parseProcess(n yamlfile.Node, name, schema string, kinds []sinks.Spec, set *storeSet) Process {
	p := Process{Name: name, stores: set}
	if err := checkName(name); err != nil {
		n.Fault("%v", err)
	}
	keys := n.Decode(&p, yamlfile.By{
		"source": func(n yamlfile.Node) { p.Source = parseSource(n) },
		"sink":   func(n yamlfile.Node) { p.Sink = readSink(n, kinds) },
		"upcast": func(n yamlfile.Node) { p.Upcast = parseUpcast(n) },
	})
	keys.Read("start", func(n yamlfile.Node) { checkStart(n, p.Start) })
	keys.Read("claims", func(n yamlfile.Node) { checkPlace(n, set, p.Claims) })
	keys.Read("dead_letter_run", func(n yamlfile.Node) {
		if !p.DeadLetter {
			n.Fault("it limits dead letters, and on_poison: dead_letter is not set: set it, or remove this key")
		}
	})
	if p.Sink.Config != nil && p.Sink.window() > p.filled().Checkpoint {
		n.Fault("a window of %d needs a checkpoint of at least as many, since a fault may send a whole window again", p.Sink.window())
	}
	if n.Sound() && p.Source.Named().Columns.Type == "" {
		keys.Read("upcast", func(n yamlfile.Node) {
			n.Fault("it goes by the type of a record, and the source has none: name the column in source.columns.type, or remove this key")
		})
	}
	if p.files = n.FileTexts(); n.Sound() {
		checkProcess(n, p, schema)
	}
	return p
}

// maxNameBytes is how many bytes of a name PostgreSQL keeps.
const maxNameBytes = 63

// checkName refuses names that would be cut off, that a log could not show, or that a command would take for a flag.
func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return errors.New("the name of a process must not be empty, and must not begin or end with a space")
	case len(name) > maxNameBytes:
		return fmt.Errorf("the name has %d bytes: shorten it to %d", len(name), maxNameBytes)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name has a character that cannot be printed: remove it")
	case !begins(name):
		first, _ := utf8.DecodeRuneInString(name)
		return fmt.Errorf("the name of a process must begin with a letter, a digit or _, and not with %c: "+
			"give it another one; a cursor that has this one follows with `ordered-dispatcher process rename -- %s NEW`", first, visible.Shell(name))
	default:
		return nil
	}
}

// begins reports whether a name may begin with its first character.
func begins(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return first == '_' || unicode.IsLetter(first) || unicode.IsDigit(first)
}

// checkProcess makes the packages check their settings. If they would refuse a setting at the start, it is refused
// here.
func checkProcess(n yamlfile.Node, p Process, schema string) {
	store, err := cursor.NewStore(nil, cursor.Config{Schema: schema})
	if err != nil {
		return // the schema's fault is reported
	}
	if _, _, err := p.build(dependencies{store: store, stdout: io.Discard}); err != nil {
		n.Refuse(err)
	}
}

func parseRules(n yamlfile.Node, processes []Process, set *storeSet) (all []TableRule) {
	m := n.AnyMapping()
	for _, name := range m.Names() {
		n, _ := m.Get(name)
		r := TableRule{Table: name}
		if i := slices.IndexFunc(all, func(other TableRule) bool { return sameName(other.Table, name) }); i >= 0 {
			n.Fault("retention.%s is a rule for the same table: remove one of them", all[i].Table)
		}
		keys := n.Decode(&r.Rule, nil)
		keys.Read("directory", func(n yamlfile.Node) { checkPlace(n, set, r.Directory) })
		keys.Read("batch", func(n yamlfile.Node) {
			if r.Mode == rules.ModeDrop {
				n.Fault("mode drop removes whole partitions, and not rows: remove this key, or write another mode")
			}
		})
		if !slices.ContainsFunc(processes, func(p Process) bool { return p.Source.Table == name }) {
			n.Fault("no process reads a table of this name: write it as source.table of a process has it")
		}
		if n.Sound() {
			if err := r.Check(); err != nil {
				n.Refuse(err)
			} else if sameName(r.Archive, name) {
				n.Fault("archive %s is the table itself: name another one", r.Archive)
			}
		}
		all = append(all, r)
	}
	return all
}

// sameName reports whether two names differ in nothing but quotes and the schema public. A database may have further
// names for one table.
func sameName(one, other string) bool {
	a, errA := pgname.Parse(one)
	b, errB := pgname.Parse(other)
	if len(a) == 1 {
		a = []string{"public", a[0]}
	}
	if len(b) == 1 {
		b = []string{"public", b[0]}
	}
	return errA == nil && errB == nil && slices.Equal(a, b)
}

func parseSource(n yamlfile.Node) (c table.Config) {
	keys := n.Decode(&c, nil)
	keys.Read("where", func(n yamlfile.Node) {
		if len(n.References()) > 0 {
			n.Fault("a condition must not have a reference: doctor, grants, the log and the audit show it to people who must not know a secret. " +
				"Write the value out, or compare with a table that has it")
		}
	})
	if n.Sound() {
		if _, err := table.New(nil, c); err != nil {
			n.Refuse(err)
		}
	}
	return c
}

// checkPlace refuses the URL of a store that this program cannot open.
func checkPlace(n yamlfile.Node, set *storeSet, place string) {
	if err := set.check(place); err != nil && n.Sound() {
		n.Refuse(err)
	}
}

func checkStart(n yamlfile.Node, start cursor.Position) {
	switch {
	case !n.Sound() || start == processor.Beginning || start == processor.End:
	case start == "":
		n.Fault("say where: beginning, end, or a position")
	case !table.IsPosition(start):
		n.Fault("this is not a place to start: write beginning, end (send only what comes from now on), or a position as status shows it")
	default:
		if err := table.CheckPosition(start); err != nil {
			n.Fault("%v", err)
		}
	}
}
