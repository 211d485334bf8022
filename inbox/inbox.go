package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Message is what Handle has to know of a record. Package-level functions read it from the headers of a protocol.
type Message struct {
	Process  string // "ordered-process"
	Sequence int64  // "ordered-sequence", from 1
	Epoch    int64  // "ordered-epoch", from 1
	DedupKey string // "ordered-dedup-key"
}

// Outcome is what became of a message.
type Outcome int

const (
	// Applied means that the effect is part of the transaction.
	Applied Outcome = iota + 1
	// Duplicate means that the record was applied before. The effect was not called.
	Duplicate
)

// StaleError means that a worker sent the message that has been superseded. Answer 409.
type StaleError struct {
	Message Message
	Seen    int64 // the largest epoch of the process
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("inbox: record %q of process %q has epoch %d, and epoch %d has come: another worker has taken over", e.Message.DedupKey, e.Message.Process, e.Message.Epoch, e.Seen)
}

// GapError means that records before the message have not come. Answer 428.
type GapError struct {
	Message Message
	Last    int64 // the largest sequence that was applied
}

func (e *GapError) Error() string {
	return fmt.Sprintf("inbox: record %q of process %q has number %d, and the last one applied is %d", e.Message.DedupKey, e.Message.Process, e.Message.Sequence, e.Last)
}

// Config describes an inbox. Zero values mean defaults.
type Config struct {
	// Receiver names who applies records. Required.
	Receiver string
	// Schema has the two tables. Default "public".
	Schema string
	// RefuseGaps has Handle return a *GapError where a number is missing. Not every gap is a loss: see docs/wire.md.
	// The first message of a process may have any number.
	RefuseGaps bool
}

// Inbox applies records for one receiver. It is safe for concurrent use.
type Inbox struct {
	config                       Config
	enter, note, advance, forget string // statements
}

// New returns the inbox that config describes. It does not touch the database.
func New(config Config) (*Inbox, error) {
	if config.Receiver == "" {
		return nil, errors.New("inbox: Receiver is missing: name who applies the records")
	}
	config.Schema = cmp.Or(config.Schema, "public")
	in := func(sql string) string { return within(config.Schema, sql) }
	return &Inbox{config: config, enter: in(enterSQL), note: in(noteSQL), advance: in(advanceSQL), forget: in(pruneSQL)}, nil
}

// Handle applies a message for a receiver whose inbox is in the schema public: see Inbox.Handle.
func Handle(ctx context.Context, tx pgx.Tx, receiver string, m Message, effect func(context.Context, pgx.Tx) error) (Outcome, error) {
	i, err := New(Config{Receiver: receiver})
	if err != nil {
		return 0, err
	}
	return i.Handle(ctx, tx, m, effect)
}

// Handle applies a message in the transaction tx, which has to be READ COMMITTED. It calls effect unless the message
// is stale, repeated, or after a gap that is refused. After an error, also one of effect, the caller rolls back; else
// it commits, and then acknowledges the message.
func (i *Inbox) Handle(ctx context.Context, tx pgx.Tx, m Message, effect func(context.Context, pgx.Tx) error) (Outcome, error) {
	if err := m.validate(); err != nil {
		return 0, err
	}
	seen, err := i.lock(ctx, tx, m)
	switch {
	case err != nil:
		return 0, err
	case m.Epoch < seen.epoch:
		return 0, &StaleError{Message: m, Seen: seen.epoch}
	}
	changed, err := i.exec(ctx, tx, i.note, i.config.Receiver, m.Process, m.DedupKey)
	switch {
	case err != nil:
		return 0, err
	case changed == 0:
		return Duplicate, nil
	case i.config.RefuseGaps && seen.sequence > 0 && m.Sequence > seen.sequence+1:
		return 0, &GapError{Message: m, Last: seen.sequence}
	}
	if _, err := i.exec(ctx, tx, i.advance, i.config.Receiver, m.Process, m.Sequence); err != nil {
		return 0, err
	}
	if err := effect(ctx, tx); err != nil {
		return 0, err
	}
	return Applied, nil
}

func (m Message) validate() error {
	if m.Process == "" || m.DedupKey == "" || m.Sequence < 1 || m.Epoch < 1 {
		return fmt.Errorf("%w: it lacks a process, a dedup key, a sequence or an epoch: %+v", ErrMessage, m)
	}
	return nil
}
