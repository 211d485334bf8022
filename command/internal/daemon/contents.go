package daemon

import (
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// contents are the sources from which a StatusReader shows whole records, by process. Each is made when it is first asked
// for: most processes are never looked at so closely.
type contents struct {
	mu      sync.Mutex
	sources map[string]*table.Source
}

// Source returns a source that reads whole records of a process, for callers that show them. It waits for no writer. It
// returns nil if the file does not have the process.
func (r *StatusReader) Source(process string) (*table.Source, error) {
	p, ok := r.written(process)
	if !ok {
		return nil, nil
	}
	r.contents.mu.Lock()
	defer r.contents.mu.Unlock()
	if source := r.contents.sources[process]; source != nil {
		return source, nil
	}
	config := p.Source
	config.Delivered = true
	source, err := r.config.Config.sourceOf(p, config, r.pool, nil)
	if err != nil {
		return nil, &UsageError{err}
	}
	if r.contents.sources == nil {
		r.contents.sources = map[string]*table.Source{}
	}
	r.contents.sources[process] = source
	return source, nil
}

// Operator returns what reads the audit and the dead letters through the reader's connections.
func (r *StatusReader) Operator() *operator.Operator { return operator.New(r.store) }

// Store returns the cursors, through the reader's connections.
func (r *StatusReader) Store() *cursor.Store { return r.store }

// Secrets returns what a text from the database must not have.
func (r *StatusReader) Secrets() secret.Set { return r.secrets }

// HeldBy describes how a transaction is in the way of the records of the process, and what to do about it.
func (s Status) HeldBy(w table.Writer) Hold {
	h := s.heldBy("records", w)
	return Hold{HoldWriter, h.problem, h.next, h.sql}
}

// Paused is how long the reader has waited so far, in all, only to look a second time.
func (r *StatusReader) Paused() time.Duration { return time.Duration(r.paused.Load()) }
