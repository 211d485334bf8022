package daemon

import (
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// renewal reads a configuration again, with the present content of the files that its references name. The text and
// the environment are those of the start: an edited configuration needs a restart.
type renewal struct {
	name   string
	text   []byte
	env    yamlfile.Environment
	kinds  Kinds
	stores *storeSet
	once   map[string]bool // what was not a file at the start, such as a pipe, is not read again

	mu       sync.Mutex
	password string   // of the database, in use; "" until it is known
	former   []string // secrets that others have replaced
	masks    secret.Set

	users chan string // the user of the database whenever it changes; only the last one waits
}

// newUsers delivers the user of the database whenever it changes. It delivers nothing if the login does not come from
// files.
func (r *renewal) newUsers() <-chan string {
	if r == nil {
		return nil
	}
	return r.users
}

// noteUser notes that new connections log in as another user. It drops a user that was not yet taken from the
// channel.
func (r *renewal) noteUser(user string) {
	select {
	case <-r.users:
	default:
	}
	select {
	case r.users <- user:
	default: // another pool's login came first
	}
}

// readFirst reads a file at the start, and notes whether it is one. A pipe yields nothing the second time, and its
// reader would wait. It checks before it reads, since either may be gone afterwards.
func (r *renewal) readFirst(path string) (string, error) {
	r.once[path] = isPipe(path) || r.once[path]
	return yamlfile.ReadSecret(path)
}

// maxFormer bounds how many former secrets are still kept out of messages.
const maxFormer = 16

// readAgain returns the present content of files. For one that cannot be read it returns the former text; the error
// names that file.
func (r *renewal) readAgain(former map[string]string) (map[string]string, error) {
	texts := make(map[string]string, len(former))
	var faults []error
	for _, path := range slices.Sorted(maps.Keys(former)) {
		if texts[path] = former[path]; r.once[path] || isPipe(path) {
			continue
		}
		text, err := yamlfile.ReadSecret(path)
		if err != nil {
			text = former[path]
			faults = append(faults, err)
		}
		texts[path] = text
	}
	return texts, errors.Join(faults...)
}

// isPipe reports whether a path no longer names a file, but something that could keep its reader waiting.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// readProcess reads a process again, with other texts of its files.
func (r *renewal) readProcess(name, schema string, texts map[string]string) (p Process, err error) {
	err = r.read(texts, func(m yamlfile.Mapping) {
		m.Read("processes", func(n yamlfile.Node) {
			n.AnyMapping().Read(name, func(n yamlfile.Node) { p = parseProcess(n, name, schema, r.kinds.Sinks, r.stores) })
		})
	})
	return p, err
}

// readDatabase reads the connection string again.
func (r *renewal) readDatabase(texts map[string]string) (database string, err error) {
	err = r.read(texts, func(m yamlfile.Mapping) {
		m.Read("database", func(n yamlfile.Node) { database = parseDatabase(n) })
	})
	return database, err
}

// read reads a part of the configuration, with these texts of the files to which it refers.
func (r *renewal) read(texts map[string]string, part func(yamlfile.Mapping)) error {
	file := yamlfile.Parse(r.name, r.text, r.env)
	file.ReadFilesBy(func(path string) (string, error) { return texts[path], nil })
	part(file.Root().Mapping(yamlfile.Known(Config{})...))
	return file.Err()
}

// learn keeps replaced secrets out of messages, since a receiver may quote them. A sink itself keeps out the ones
// that it uses.
func (r *renewal) learn(former ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remember(former)
}

// learnLogin keeps the password of the database out of messages for as long as it is in use.
func (r *renewal) learnLogin(password string, former ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	former = append(former, r.password)
	r.password = password
	r.remember(former)
}

// learnFirst is learnLogin for the password of the start, which may have been replaced by now.
func (r *renewal) learnFirst(password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.password == "" {
		r.password = password
	}
	r.remember([]string{password})
}

// remember forgets the oldest of many former secrets. The one in use is not among them.
func (r *renewal) remember(former []string) {
	for _, text := range former {
		if text != "" && !slices.Contains(r.former, text) {
			r.former = append(r.former, text)
		}
	}
	r.former = slices.DeleteFunc(r.former, func(text string) bool { return text == r.password })
	r.former = slices.Clone(r.former[max(0, len(r.former)-maxFormer):])
	r.masks = secret.New(append([]string{r.password}, r.former...)...)
}

// secrets returns the learnt secrets.
func (r *renewal) secrets() secret.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.masks
}

// replaced returns the secrets among the former texts that others have replaced. A text may be a whole URL.
func replaced(former, now map[string]string) (secrets []string) {
	for path, text := range former {
		if text == now[path] {
			continue
		}
		secrets = append(secrets, text)
		if u, err := url.Parse(text); err == nil && u.User != nil {
			password, _ := u.User.Password()
			secrets = append(secrets, password)
		}
	}
	return secrets
}

// renewInterval is how often a sink that delivers looks at its files without a failure.
const renewInterval = time.Minute

// rotation follows the files of one process.
type rotation struct {
	*renewal
	schema   string  // of the cursor
	process  Process // as its files described it when they were last followed
	log      *slog.Logger
	interval time.Duration
	looked   time.Time
	warned   map[string]bool // the warnings that were given, which are not repeated
}

// rotation returns nil for a process without such files or without a receiver, and if files are not followed.
func (p Process) rotation(d dependencies) *rotation {
	if d.renewInterval == 0 || d.config.renewal == nil || len(p.files) == 0 || p.Shadow != nil {
		return nil
	}
	return &rotation{
		renewal: d.config.renewal, schema: d.config.Schema, process: p, interval: d.renewInterval, looked: time.Now(),
		log: quietly(d.logger).With("process", p.Name),
	}
}

// due reports whether the last look at the files was a while ago.
func (r *rotation) due() bool { return time.Since(r.looked) >= r.interval }

// look returns the process as its files describe it now, and whether it differs from before. A setting that only a
// restart can change keeps its former value.
func (r *rotation) look() (Process, bool) {
	r.looked = time.Now()
	texts, err := r.readAgain(r.process.files)
	if err != nil {
		r.warn("the file of a secret cannot be read again: the former value stays in use", "err", err.Error())
	}
	if maps.Equal(texts, r.process.files) {
		if err == nil {
			r.warned = nil
		}
		return Process{}, false
	}
	now, err := r.readProcess(r.process.Name, r.schema, texts)
	if err != nil {
		r.warn("the file of a secret has changed, and its new value is not valid: the former value stays in use", "err", err.Error())
		return Process{}, false
	}
	if fixed := r.process.fixedBy(now); len(fixed) > 0 {
		r.warn("a file that the configuration refers to has changed a setting that needs a restart: the former value stays in use",
			"settings", strings.Join(fixed, ", "))
		return Process{}, false
	}
	return now, true
}

// follow adopts a process that look returned.
func (r *rotation) follow(now Process) {
	r.learn(replaced(r.process.files, now.files)...)
	r.process, r.warned = now, nil
	r.log.Info("the file of a secret has changed: the sink uses the new value")
}

// warn logs a warning once, until the files are again as they were, or are followed.
func (r *rotation) warn(message, key, value string) {
	if !r.warned[message+value] {
		r.log.Warn(message, key, value)
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[message+value] = true
}

// fixedBy names the differences between two readings of the process beyond its credentials: where its records go, and
// all settings that the processor was given.
func (p Process) fixedBy(now Process) (names []string) {
	names = p.settings("").changed(now.settings(""))
	if p.Sink.window() != now.Sink.window() {
		names = append(names, "sink."+p.Sink.Kind+".window")
	}
	if !reflect.DeepEqual(p.processorConfig(dependencies{}), now.processorConfig(dependencies{})) || !reflect.DeepEqual(p.Source, now.Source) {
		names = append(names, "the way the process uses the sink")
	}
	slices.Sort(names)
	return names
}
