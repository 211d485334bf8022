package claim

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
)

// Header is the header of a row whose payload is a Reference. Its value is the name of the object.
const Header = packed.Claim

// Errors about one object. All other errors of a store are outages.
var (
	// ErrMissing means that the store has no object of that name.
	ErrMissing = errors.New("the object is missing from its store")
	// ErrAltered means that the object is not the payload that was put: it was truncated or changed.
	ErrAltered = errors.New("the object is not the one that was stored: its size or SHA-256 differs")
	// ErrTooLarge means that the object is larger than the caller takes.
	ErrTooLarge = errors.New("the object is too large")
	// ErrReference means that a row does not hold a reference, although its header says so.
	ErrReference = errors.New("the row holds no reference to an object")
)

// Store keeps objects. It is safe for concurrent use.
type Store interface {
	// Put stores an object under a new name. Once it returns nil, the object survives a crash of the store.
	Put(ctx context.Context, name string, content []byte) error
	// Get returns an object, or ErrTooLarge if it has more than limit bytes. It returns ErrMissing if there is none.
	Get(ctx context.Context, name string, limit int) ([]byte, error)
	// List calls each for all objects, in any order, until it returns an error.
	List(ctx context.Context, each func(Object) error) error
	// Delete removes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
}

// Object is an object in a list.
type Object struct {
	Name  string
	At    time.Time // when it was put, by the clock of the store
	Bytes int64
}

// Reference identifies an object and its content.
type Reference struct {
	Object string `json:"object"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

// Put stores a payload under a new name and returns its reference.
func Put(ctx context.Context, store Store, payload []byte) (Reference, error) {
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails: see crypto/rand
	sum := sha256.Sum256(payload)
	r := Reference{Object: hex.EncodeToString(name[:]), Bytes: len(payload), SHA256: hex.EncodeToString(sum[:])}
	if err := store.Put(ctx, r.Object, payload); err != nil {
		return Reference{}, fmt.Errorf("put the payload into its store: %w", err)
	}
	return r, nil
}

// JSON returns the reference as a row has it.
func (r Reference) JSON() []byte {
	text, _ := json.Marshal(r) // texts and a number: never fails
	return text
}

var names, sums = regexp.MustCompile(`^[0-9a-f]{32}$`), regexp.MustCompile(`^[0-9a-f]{64}$`)

// Parse reads the reference of a row. header is the value of its Header.
func Parse(header string, payload []byte) (Reference, error) {
	var r Reference
	if err := json.Unmarshal(payload, &r); err != nil || !names.MatchString(r.Object) || !sums.MatchString(r.SHA256) || r.Bytes < 0 || r.Object != header {
		return Reference{}, ErrReference
	}
	return r, nil
}

// Resolve returns the payload, if it has at most limit bytes. The error is or wraps ErrMissing, ErrAltered or
// ErrTooLarge if it is about this object.
func (r Reference) Resolve(ctx context.Context, store Store, limit int) ([]byte, error) {
	if r.Bytes > limit {
		return nil, ErrTooLarge
	}
	payload, err := store.Get(ctx, r.Object, r.Bytes)
	if errors.Is(err, ErrTooLarge) {
		return nil, ErrAltered
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(payload); len(payload) != r.Bytes || hex.EncodeToString(sum[:]) != r.SHA256 {
		return nil, ErrAltered
	}
	return payload, nil
}

// IsAboutObject reports whether an error is about one object, and not an outage of its store.
func IsAboutObject(err error) bool {
	for _, known := range []error{ErrMissing, ErrAltered, ErrTooLarge, ErrReference} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// lookedUp is how many names are looked up together.
const lookedUp = 1000

// Orphans calls each for the objects that were put more than age ago, unless referred returns them: it gets names, and
// returns those to which a row refers. age must be longer than any transaction that writes a record. Orphans ends with
// the first error, also of each.
func Orphans(ctx context.Context, store Store, age time.Duration, referred func(ctx context.Context, names []string) ([]string, error), each func(Object) error) error {
	before := time.Now().Add(-age)
	var old []Object
	sweep := func() error {
		defer func() { old = old[:0] }()
		return unreferred(ctx, old, referred, each)
	}
	err := store.List(ctx, func(o Object) error {
		if !names.MatchString(o.Name) || !o.At.Before(before) {
			return nil // not ours, or too young
		}
		if old = append(old, o); len(old) < lookedUp {
			return nil
		}
		return sweep()
	})
	if err != nil || len(old) == 0 {
		return err
	}
	return sweep()
}

// unreferred calls each for those objects that referred does not return.
func unreferred(ctx context.Context, objects []Object, referred func(context.Context, []string) ([]string, error), each func(Object) error) error {
	all := make([]string, len(objects))
	for i, o := range objects {
		all[i] = o.Name
	}
	kept, err := referred(ctx, all)
	if err != nil {
		return fmt.Errorf("look for the rows that refer to objects: %w", err)
	}
	for _, o := range objects {
		if slices.Contains(kept, o.Name) {
			continue
		}
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// Removed is what Collect has removed.
type Removed struct {
	Objects int
	Bytes   int64
}

// Collect removes what Orphans finds. It also returns beside an error what it had removed until then.
func Collect(ctx context.Context, store Store, age time.Duration, referred func(ctx context.Context, names []string) ([]string, error)) (removed Removed, err error) {
	err = Orphans(ctx, store, age, referred, func(o Object) error {
		if err := store.Delete(ctx, o.Name); err != nil {
			return fmt.Errorf("remove an object: %w", err)
		}
		removed.Objects++
		removed.Bytes += o.Bytes
		return nil
	})
	return removed, err
}
