package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
)

// Kinds are what a configuration may have.
type Kinds struct {
	Sinks  []sinks.Spec
	Stores []stores.Spec
}

// storeSet opens the object stores that a configuration names, each when it is first used. A nil one knows directories
// alone.
type storeSet struct {
	kinds []stores.Spec

	mu   sync.Mutex
	open map[string]*opening // by URL
}

// newStoreSet returns nil if there are no kinds.
func newStoreSet(kinds []stores.Spec) *storeSet {
	if len(kinds) == 0 {
		return nil
	}
	return &storeSet{kinds: kinds, open: map[string]*opening{}}
}

// isURL reports whether a place is not a directory.
func isURL(place string) bool { return strings.Contains(place, "://") }

// oneSlash matches what was meant to be a URL, and would be a directory.
var oneSlash = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+:)/`)

// kind returns the kind of a URL. An error is about the URL, and quotes nothing of it that may be a secret.
func (s *storeSet) kind(place string) (kind stores.Spec, u *url.URL, err error) {
	u, err = url.Parse(place)
	if err != nil {
		return kind, nil, errors.New("it begins as a URL does, and is not one")
	}
	if u.User != nil {
		return kind, nil, errors.New("it has a login: leave it out, and give credentials in the environment, as the client of the store takes them")
	}
	if u.Fragment != "" {
		return kind, nil, errors.New("it has a #, which has no meaning in the URL of a store: write it as %23")
	}
	known := []string{"a path"}
	if s != nil {
		for _, kind = range s.kinds {
			if kind.Scheme == u.Scheme {
				return kind, u, nil
			}
			known = append(known, kind.Example)
		}
	}
	return kind, nil, fmt.Errorf("this program knows no store whose URLs begin with %s://: write %s", visible.Line(u.Scheme), knob.Either(known))
}

// check returns what is wrong with a place, as far as it shows without the network.
func (s *storeSet) check(place string) error {
	if !isURL(place) {
		if m := oneSlash.FindStringSubmatch(place); m != nil {
			return fmt.Errorf("the URL of a store has two slashes after its scheme: write %s//…, or an absolute path for a directory", m[1])
		}
		return nil
	}
	kind, u, err := s.kind(place)
	if err == nil {
		err = kind.Check(u)
	}
	return err
}

// opening is a store that is being opened, or is open.
type opening struct {
	done   chan struct{} // closed when the rest is set
	opened stores.Opened
	err    error
}

// openTimeout bounds how long a client looks for its credentials.
const openTimeout = time.Minute

// at opens the store at a place, or returns the one that is open. A failure is not kept: the next call tries again. What
// a call waits for goes on after ctx has ended, for the next call.
func (s *storeSet) at(ctx context.Context, place string) (stores.Opened, error) {
	if !isURL(place) {
		return directory(place), nil
	}
	kind, u, err := s.kind(place)
	if err != nil {
		return stores.Opened{}, err
	}
	o := s.begin(kind, u, place)
	select {
	case <-o.done:
		return o.opened, o.err
	case <-ctx.Done():
		return stores.Opened{}, fmt.Errorf("open the store: its client still looks for its credentials: %w", ctx.Err())
	}
}

// begin returns the opening of a place, and starts one if there is none.
func (s *storeSet) begin(kind stores.Spec, u *url.URL, place string) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, begun := s.open[place]; begun {
		return o
	}
	o := &opening{done: make(chan struct{})}
	s.open[place] = o
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		if o.opened, o.err = kind.Open(ctx, u); o.err != nil {
			o.err = fmt.Errorf("open the store: %w", o.err)
			s.forget(place, o)
		}
		close(o.done)
	}()
	return o
}

func (s *storeSet) forget(place string, o *opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[place] == o {
		delete(s.open, place)
	}
}

// close ends the connections of all stores. A store that is used after that is opened again.
func (s *storeSet) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	all := s.open
	s.open = map[string]*opening{}
	s.mu.Unlock()
	for _, o := range all {
		select {
		case <-o.done:
			_ = o.opened.Close() // no call is under way, so nothing is lost
		default: // it still looks for credentials
		}
	}
}

// directory is the store in a directory.
func directory(path string) stores.Opened {
	return stores.Opened{
		Objects: claim.Dir(path),
		Files:   rules.Directory(path),
		Reach:   func(context.Context) error { return claim.Dir(path).Check() },
		Close:   func() error { return nil },
	}
}

// claimStore returns the store of the claim checks of a process. It is opened by the first call that uses it, and the
// daemon closes it.
func (p Process) claimStore() claim.Store { return lazyObjects{p.stores, p.Claims} }

// lazyObjects are the objects of a store that may not be open yet.
type lazyObjects struct {
	set   *storeSet
	place string
}

func (l lazyObjects) Put(ctx context.Context, name string, content []byte) error {
	opened, err := l.set.at(ctx, l.place)
	if err != nil {
		return err
	}
	return opened.Objects.Put(ctx, name, content)
}

func (l lazyObjects) Get(ctx context.Context, name string, limit int) ([]byte, error) {
	opened, err := l.set.at(ctx, l.place)
	if err != nil {
		return nil, err
	}
	return opened.Objects.Get(ctx, name, limit)
}

func (l lazyObjects) List(ctx context.Context, each func(claim.Object) error) error {
	opened, err := l.set.at(ctx, l.place)
	if err != nil {
		return err
	}
	return opened.Objects.List(ctx, each)
}

func (l lazyObjects) Delete(ctx context.Context, name string) error {
	opened, err := l.set.at(ctx, l.place)
	if err != nil {
		return err
	}
	return opened.Objects.Delete(ctx, name)
}

// shelf opens where a rule writes files; nil if it writes none.
func (c Config) shelf(ctx context.Context, r TableRule) (rules.Shelf, error) {
	if r.Mode != rules.ModeFiles {
		return nil, nil
	}
	opened, err := c.stores.at(ctx, r.Directory)
	return opened.Files, err
}
