package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Outcome is what became of a message.
type Outcome int

const (
	// Applied means that the effect is part of the transaction.
	Applied Outcome = iota + 1
	// Duplicate means that the record was applied before. The effect was not called.
	Duplicate
	// Tested means that the message is a test, and no record. The effect was not called, and nothing is noted.
	Tested
)

// Config describes an inbox. Zero values mean defaults.
type Config struct {
	// Receiver names who applies records. Required.
	Receiver string
	// Schema has the two tables. Default "public".
	Schema string
	// RefuseGaps has Handle return a *GapError where a number is missing. Not every gap is a loss: see docs/wire.md. It
	// is for receivers that get all records of a process in one stream, and whose program calls AcceptGap when an
	// operator says so. The first message of a process may have any number. A message with a Stream is refused with
	// ErrStreamGaps: a stream has only some of the numbers.
	RefuseGaps bool
}

// Inbox applies records for one receiver. It is safe for concurrent use.
type Inbox struct {
	config Config
	sql    statements
}

// New returns the inbox that config describes. It does not touch the database.
func New(config Config) (*Inbox, error) {
	if config.Receiver == "" {
		return nil, errors.New("inbox: Receiver is missing: name who applies the records")
	}
	config.Schema = cmp.Or(config.Schema, "public")
	return &Inbox{config: config, sql: statementsIn(config.Schema)}, nil
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
// has been applied, or is refused: with an *OriginError, a *StaleError, a *LateError or a *GapError. An error that
// wraps ErrMessage means that the message is none.
//
// After an error, also one of effect, the caller rolls back; else it commits, and then acknowledges the message. A
// rollback forgets the message's epoch, too. Over HTTP a superseded worker may send at that moment, so the Handler
// keeps the epoch. A caller that puts the message aside calls NoteEpoch.
func (i *Inbox) Handle(ctx context.Context, tx pgx.Tx, m Message, effect func(context.Context, pgx.Tx) error) (Outcome, error) {
	if m.Test {
		return Tested, m.validate()
	}
	before, err := i.enter(ctx, tx, m)
	if err != nil {
		return 0, err
	}
	return i.settle(ctx, tx, before, m, effect)
}

// NoteEpoch notes the epoch of a message, unless it is a replay, and nothing else: in a transaction of its own, before a
// program puts a message of a broker aside that it could not apply. Then a message of a superseded worker that comes next
// is refused. It returns an *OriginError, or an error that wraps ErrMessage or ErrStreamGaps.
func (i *Inbox) NoteEpoch(ctx context.Context, tx pgx.Tx, m Message) error {
	if m.Test {
		return m.validate()
	}
	_, err := i.enter(ctx, tx, m)
	return err
}

// notes is what is known of a process in a stream.
type notes struct {
	origin          string
	epoch, sequence int64
}

// enter locks the notes of the stream, refuses another origin, and notes a larger epoch.
func (i *Inbox) enter(ctx context.Context, tx pgx.Tx, m Message) (notes, error) {
	if err := m.validate(); err != nil {
		return notes{}, err
	}
	if i.config.RefuseGaps && m.Stream != "" {
		return notes{}, fmt.Errorf("%w: process %q, stream %q", ErrStreamGaps, m.Process, m.Stream)
	}
	if err := i.open(ctx, tx, m); err != nil {
		return notes{}, err
	}
	return i.lock(ctx, tx, m)
}

// open compares the origin of the first message of a stream with the origin of the process. Dedup keys belong to the
// process, so all its streams have one origin.
func (i *Inbox) open(ctx context.Context, tx pgx.Tx, m Message) error {
	if m.Stream == "" {
		return nil
	}
	known, err := i.exec(ctx, tx, i.sql.known, i.config.Receiver, m.Process, noted(m.Stream))
	if err != nil || known > 0 {
		return err
	}
	m.Stream, m.Epoch = "", 0 // this row is the process's own: it stays locked until the stream has a row
	_, err = i.lock(ctx, tx, m)
	return err
}

// settle applies a message that enter has let in. The order of its cases is that of docs/wire.md.
func (i *Inbox) settle(ctx context.Context, tx pgx.Tx, before notes, m Message, effect func(context.Context, pgx.Tx) error) (Outcome, error) {
	fresh, err := i.exec(ctx, tx, i.sql.note, i.config.Receiver, m.Process, noted(m.DedupKey))
	switch {
	case err != nil:
		return 0, err
	case fresh == 0 && m.Epoch < before.epoch: // before StaleError: a broker that was set back repeats what is applied, and that is no harm
		return Duplicate, nil
	case fresh == 0: // after a seek back, this number is the one before the next
		_, err = i.advance(ctx, tx, m)
		return Duplicate, err
	case m.Epoch < before.epoch: // before the sequence: a superseded worker's numbers mean nothing
		return 0, &StaleError{Message: m, Seen: before.epoch}
	case m.Replay: // its number is an old one
	case m.Sequence <= before.sequence:
		return 0, &LateError{Message: m, Last: before.sequence}
	case i.config.RefuseGaps && before.sequence > 0 && m.Sequence > before.sequence+1:
		return 0, &GapError{Message: m, Last: before.sequence}
	}
	written, err := i.advance(ctx, tx, m)
	if err != nil { // before the effect, which may take a role without rights to our tables
		return 0, err
	}
	if err := effect(ctx, tx); err != nil {
		return 0, err
	}
	if err := i.requireOpen(ctx, tx, written); err != nil {
		return 0, err
	}
	return Applied, nil
}

// part is where a message was noted: a transaction, and its subtransaction, as advanceSQL has them.
type part struct{ transaction, subtransaction int64 }

// requireOpen returns errHidden unless PostgreSQL would commit what was written there.
func (i *Inbox) requireOpen(ctx context.Context, tx pgx.Tx, written part) error {
	if tx.Conn().PgConn().TxStatus() != open {
		return errHidden
	}
	same, err := i.exec(ctx, tx, openSQL, written.transaction, written.subtransaction)
	if err == nil && same == 0 {
		err = errHidden
	}
	return err
}

// open is the state of a transaction that PostgreSQL would commit.
const open = 'T'

// errHidden reports an effect that did not return the error of a statement, that ended the transaction, or that undid the
// note of its own record. PostgreSQL answers a COMMIT with a ROLLBACK, or with a warning, or it commits what is left. So
// the effect would be lost, or a part of it.
var errHidden = errors.New("inbox: a statement of the effect failed, and the effect returned no error, or the effect ended the transaction, " +
	"or rolled back to a savepoint from before it: return the error, or use a savepoint of the effect, and leave COMMIT and ROLLBACK to the inbox")

// advance notes a larger sequence, and returns where it did. A replay is out of turn, so its number says nothing of the
// records before it.
func (i *Inbox) advance(ctx context.Context, tx pgx.Tx, m Message) (written part, err error) {
	sequence := m.Sequence
	if m.Replay {
		sequence = 0
	}
	err = tx.QueryRow(ctx, i.sql.advance, i.config.Receiver, m.Process, noted(m.Stream), sequence).Scan(&written.transaction, &written.subtransaction)
	if err != nil {
		err = fmt.Errorf("inbox of receiver %q: %w", i.config.Receiver, err)
	}
	return written, err
}
