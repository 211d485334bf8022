package upcast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Func returns the payload of the next version. It must not change the payload that it is given. The log gets the text
// of its error without the words of the payload: see processor.Record.Redact.
type Func func(payload json.RawMessage) (json.RawMessage, error)

// Upcaster leads from one version of a type to the next.
type Upcaster struct {
	name    string
	version int
	up      Func
}

// From returns an upcaster from a version of a type, from 1 on, to the next version. name has no version.
func From(name string, version int, up Func) Upcaster { return Upcaster{name, version, up} }

// Upcasters are the chains of several types. They are safe for concurrent use.
type Upcasters struct{ chains map[string]chain }

// chain leads from the oldest version to the current one.
type chain struct {
	oldest int
	ups    []Func
}

func (c chain) current() int { return c.oldest + len(c.ups) }

// New returns the upcasters. It refuses a gap in a chain, two upcasters from one version, and a version below 1.
func New(upcasters ...Upcaster) (*Upcasters, error) {
	all := slices.Clone(upcasters)
	slices.SortStableFunc(all, func(a, b Upcaster) int { return a.version - b.version })
	u := &Upcasters{chains: map[string]chain{}}
	for _, next := range all {
		c, known := u.chains[next.name]
		switch {
		case next.name == "" || next.up == nil:
			return nil, errors.New("upcast: an upcaster needs a type and a function")
		case next.version < 1:
			return nil, fmt.Errorf("upcast: %q from version %d: versions begin with 1", next.name, next.version)
		case !known:
			c.oldest = next.version
		case next.version < c.current():
			return nil, fmt.Errorf("upcast: %q has two upcasters from version %d: keep one", next.name, next.version)
		case next.version > c.current():
			return nil, fmt.Errorf("upcast: %q has a gap: there is no upcaster from version %d, and one from version %d", next.name, c.current(), next.version)
		}
		c.ups = append(c.ups, next.up)
		u.chains[next.name] = c
	}
	return u, nil
}

// Split returns the name and the version of a type. Without a version the type is version 1.
func Split(typ string) (name string, version int) {
	at := strings.LastIndexByte(typ, '@')
	if at < 1 {
		return typ, 1
	}
	digits := typ[at+1:]
	if digits == "" || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return typ, 1
	}
	version, err := strconv.Atoi(digits)
	if err != nil { // more digits than any version has
		version = math.MaxInt
	}
	return typ[:at], version
}

// Prepare returns the record with its payload and its type in the current version. It is a processor.Prepare.
func (u *Upcasters) Prepare(_ context.Context, r processor.Record) (processor.Record, error) {
	name, version := Split(r.Type)
	c, known := u.chains[name]
	if !known {
		return r, nil
	}
	shown := visible.Cut(name)
	switch {
	case version > c.current():
		return r, failure(shown, version, "the current version is %d: this program is older than the producer of the record, so update it", c.current())
	case version < c.oldest:
		return r, failure(shown, version, "there is no upcaster from this version: the oldest is from version %d", c.oldest)
	}
	for ; version < c.current(); version++ {
		if err := c.up(&r, version); err != nil {
			return r, failure(shown, version, "%w", err)
		}
	}
	r.Type = name + "@" + strconv.Itoa(version)
	return r, nil
}

// up replaces the payload of a version by that of the next one.
func (c chain) up(r *processor.Record, version int) error {
	if err := packed.Fault(r.Headers); err != nil {
		return err
	}
	if !json.Valid(r.Payload) {
		return errors.New("its payload is not JSON")
	}
	made, err := c.ups[version-c.oldest](r.Payload)
	switch {
	case err != nil:
		return fmt.Errorf("the upcaster failed: %s", r.Redact(err.Error()))
	case !json.Valid(made):
		return errors.New("the upcaster returned something that is not JSON")
	}
	r.Payload = made
	return nil
}

func failure(name string, version int, format string, args ...any) error {
	return processor.Permanent(fmt.Errorf("upcast %s@%d: "+format, append([]any{name, version}, args...)...))
}
