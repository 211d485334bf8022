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
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// renewal reads a configuration anew, with what the files of its references hold by now. The
// text and the environment are those of the start: an edited configuration needs a restart.
type renewal struct {
	name  string
	text  []byte
	env   yamlfile.Environment
	kinds []sinks.Spec
	once  map[string]bool // what was no file at the start, as a pipe: it is not read again

	mu       sync.Mutex
	password string   // of the database, in use; "" until it is known
	former   []string // secrets that others have replaced
	masks    secret.Set

	users chan string // the user of the database, each time that it is another one; the last one only
}

// newUsers brings the user of the database whenever it is another one. Nothing comes where no login is followed.
func (r *renewal) newUsers() <-chan string {
	if r == nil {
		return nil
	}
	return r.users
}

// noteUser says that new connections log in as another user. One that nobody has taken up is forgotten.
func (r *renewal) noteUser(user string) {
	select {
	case <-r.users:
	default:
	}
	select {
	case r.users <- user:
	default: // another pool's login was first
	}
}

// readFirst reads a file at the start, and notes whether it is one: nothing more comes out of a
// pipe, and its reader would wait. It looks before it reads, since either may be gone afterwards.
func (r *renewal) readFirst(path string) (string, error) {
	r.once[path] = isPipe(path) || r.once[path]
	return yamlfile.ReadSecret(path)
}

// maxFormer bounds the secrets of earlier times that are still kept out of messages.
const maxFormer = 16

// readAgain returns what files hold by now. The text of one that cannot be read is the former
// one; the error names it.
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

// isPipe reports whether a path names something else than a file by now, which could keep its
// reader waiting.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// readProcess reads a process anew, with other texts of its files.
func (r *renewal) readProcess(name, schema string, texts map[string]string) (p Process, err error) {
	err = r.read(texts, func(m yamlfile.Mapping) {
		m.Read("processes", func(n yamlfile.Node) {
			n.AnyMapping().Read(name, func(n yamlfile.Node) { p = parseProcess(n, name, schema, r.kinds) })
		})
	})
	return p, err
}

// readDatabase reads the connection string anew.
func (r *renewal) readDatabase(texts map[string]string) (database string, err error) {
	err = r.read(texts, func(m yamlfile.Mapping) {
		m.Read("database", func(n yamlfile.Node) { database = parseDatabase(n) })
	})
	return database, err
}

// read reads a part of the configuration, with these texts of the files that it refers to.
func (r *renewal) read(texts map[string]string, part func(yamlfile.Mapping)) error {
	file := yamlfile.Parse(r.name, r.text, r.env)
	file.ReadFilesBy(func(path string) (string, error) { return texts[path], nil })
	part(file.Root().Mapping(yamlfile.Known(Config{})...))
	return file.Err()
}

// learn has messages leave out secrets that others have replaced: a receiver may quote them. A sink
// itself leaves out those that it uses.
func (r *renewal) learn(former ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remember(former)
}

// learnLogin has messages leave out the password of the database for as long as it is in use.
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

// remember forgets the oldest of many. That in use is not among them.
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

// secrets are those that were learnt.
func (r *renewal) secrets() secret.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.masks
}

// replaced are the secrets of the texts that others have replaced. A text may be a whole URL.
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
	warned   map[string]bool // what was said, which is not repeated
}

// rotation returns nil for a process without such files, and where none are followed.
func (p Process) rotation(d dependencies) *rotation {
	if d.renewInterval == 0 || d.config.renewal == nil || len(p.files) == 0 {
		return nil
	}
	return &rotation{
		renewal: d.config.renewal, schema: d.config.Schema, process: p, interval: d.renewInterval, looked: time.Now(),
		log: quietly(d.logger).With("process", p.Name),
	}
}

// due reports whether the files were not looked at for a while.
func (r *rotation) due() bool { return time.Since(r.looked) >= r.interval }

// look returns the process as its files describe it now, and whether that is another one than
// before. What only a restart can change keeps its former value.
func (r *rotation) look() (Process, bool) {
	r.looked = time.Now()
	texts, err := r.readAgain(r.process.files)
	if err != nil {
		r.warn("a file of a secret cannot be read again: its former value stays in use", "err", err.Error())
	}
	if maps.Equal(texts, r.process.files) {
		if err == nil {
			r.warned = nil
		}
		return Process{}, false
	}
	now, err := r.readProcess(r.process.Name, r.schema, texts)
	if err != nil {
		r.warn("a file of a secret has changed, and what it holds is not valid: its former value stays in use", "err", err.Error())
		return Process{}, false
	}
	if fixed := r.process.fixedBy(now); len(fixed) > 0 {
		r.warn("a file that the configuration refers to has changed what needs a restart: the former value stays in use",
			"settings", strings.Join(fixed, ", "))
		return Process{}, false
	}
	return now, true
}

// follow takes up a process that look returned.
func (r *rotation) follow(now Process) {
	r.learn(replaced(r.process.files, now.files)...)
	r.process, r.warned = now, nil
	r.log.Info("a file of a secret has changed: the sink uses what it holds now")
}

// warn says something once, until the files are again as they were or are followed.
func (r *rotation) warn(message, key, value string) {
	if !r.warned[message+value] {
		r.log.Warn(message, key, value)
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[message+value] = true
}

// fixedBy names what differs in another reading of the process, beyond its credentials: where its
// records go, and all that was handed to the processor.
func (p Process) fixedBy(now Process) (names []string) {
	was, is := p.settings(""), now.settings("")
	for name, value := range was {
		if is[name] != value {
			names = append(names, name)
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	if p.Sink.window() != now.Sink.window() {
		names = append(names, "sink."+p.Sink.Kind+".window")
	}
	if !reflect.DeepEqual(p.processorConfig(dependencies{}), now.processorConfig(dependencies{})) || !reflect.DeepEqual(p.Source, now.Source) {
		names = append(names, "what the process does with the sink")
	}
	slices.Sort(names)
	return names
}
