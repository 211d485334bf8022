package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// MaxDeadLetters is the largest number that one list shows.
const MaxDeadLetters = 10_000

// DeadLetters gives an operator the dead letters of one schema. The caller closes it.
type DeadLetters struct {
	config Config
	pool   *pgxpool.Pool
	store  *cursor.Store
	op     *operator.Operator
}

// NewDeadLetters makes the pool. It does not connect yet.
func NewDeadLetters(ctx context.Context, c Config) (*DeadLetters, error) {
	pool, store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return &DeadLetters{config: c, pool: pool, store: store, op: operator.New(store)}, nil
}

// Close closes the connections.
func (d *DeadLetters) Close() {
	d.config.stores.close()
	d.pool.Close()
}

// List returns the dead letters of a process, or of all processes if process is "", in the order in which they were
// put aside, without their payloads. With all, it includes those that are resolved.
func (d *DeadLetters) List(ctx context.Context, process string, all bool, limit int) ([]cursor.DeadLetter, error) {
	letters, err := d.op.DeadLetters(ctx, process, all, limit)
	if err == nil && len(letters) == 0 {
		err = d.known(ctx, process)
	}
	return letters, Reachable(err)
}

// known refuses the name of a process that has no dead letter and is neither in the file nor in the database: it is
// probably a typing error. "" means all processes.
func (d *DeadLetters) known(ctx context.Context, process string) error {
	rows, err := d.store.List(ctx)
	if err != nil || process == "" {
		return err
	}
	names := d.config.Names()
	for _, row := range rows {
		if !slices.Contains(names, row.Process) {
			names = append(names, row.Process)
		}
	}
	if slices.Contains(names, process) {
		return nil
	}
	return unknownProcess(process, names)
}

// Show returns one dead letter with its payload.
func (d *DeadLetters) Show(ctx context.Context, id int64) (cursor.DeadLetter, error) {
	letter, err := d.op.DeadLetter(ctx, id)
	return letter, d.explain(err)
}

// Discard marks dead letters as never to be delivered, one after the other. It stops at the first failure, and calls
// done after each.
func (d *DeadLetters) Discard(ctx context.Context, letters []cursor.DeadLetter, decision cursor.Decision, done func(cursor.DeadLetter) error) error {
	return each(letters, func(l cursor.DeadLetter) error {
		_, err := d.op.Discard(ctx, l.ID, decision)
		return d.explain(err)
	}, done)
}

// Replay delivers dead letters of one process to the sink that the file gives it, one after the other. Each may take
// decision.Timeout. Replay stops at the first failure, and calls done after each. A worker of the process stands
// aside meanwhile. The stdout sink writes to out.Stdout.
func (d *DeadLetters) Replay(ctx context.Context, letters []cursor.DeadLetter, decision cursor.Decision, out Output, done func(cursor.DeadLetter) error) error {
	name := letters[0].Process
	i := slices.IndexFunc(d.config.Processes, func(p Process) bool { return p.Name == name })
	if i < 0 {
		return usage("dead letter %d belongs to process %q, which is not in the file: the file has %s", letters[0].ID, name, strings.Join(d.config.Names(), ", "))
	}
	var opened closers
	defer opened.close()
	process, _, err := d.config.Processes[i].build(dependencies{config: d.config, pool: d.pool, store: d.store, stdout: out.Stdout, logger: out.Logger, closers: &opened})
	if err != nil {
		return err
	}
	return each(letters, func(l cursor.DeadLetter) error {
		ctx, cancel := context.WithTimeout(ctx, decision.Timeout)
		defer cancel()
		return d.explain(replayRight(process.Replay(ctx, l.ID, decision)))
	}, done)
}

// Output is where a delivery outside of run writes its records and its log.
type Output struct {
	Stdout io.Writer
	Logger *slog.Logger
}

// explain adds the next step to a refusal.
func (d *DeadLetters) explain(err error) error {
	switch {
	case errors.Is(err, cursor.ErrMoved):
		return fmt.Errorf("%w; nothing was changed: `ordered-dispatcher dead-letter list --wide` shows the positions", err)
	case errors.Is(err, cursor.ErrNoDeadLetter):
		return fmt.Errorf("%w; `ordered-dispatcher dead-letter list` shows the open ones, and with --all also the others", err)
	case errors.Is(err, cursor.ErrHalted), errors.Is(err, cursor.ErrPaused):
		return fmt.Errorf("%w; let it run first: `ordered-dispatcher status` shows how", err)
	case processor.IsPermanent(err):
		return fmt.Errorf("%w; the dead letter stays open: fix the cause and replay it again, or discard it. A replay sends what the record was when it was put aside, not what its row is now", err)
	default:
		return Reachable(err)
	}
}

// replayRight adds the next step if the role may not read the record: grants prints that right as a commented line.
func replayRight(err error) error {
	if denied(err) && !processor.IsRefused(err) { // refused: the role of the sink itself
		return fmt.Errorf("%w, with the right for dead-letter replay, which it prints as a comment", err)
	}
	return err
}

// Resolution returns how a dead letter ended, or "open".
func Resolution(l cursor.DeadLetter) string {
	if l.Resolution == "" {
		return "open"
	}
	return string(l.Resolution)
}

// deadLetterJSON is one dead letter in JSON. Numbers of 64 bits are strings. Fields may be added, never changed.
type deadLetterJSON struct {
	ID            int64             `json:"id,string"`
	Process       string            `json:"process"`
	At            time.Time         `json:"at"`
	Position      string            `json:"position"`
	Sequence      int64             `json:"sequence,string"`
	Table         string            `json:"table"`
	RecordID      string            `json:"record_id"`
	Key           string            `json:"key"`
	Type          string            `json:"type"`
	CreatedAt     *time.Time        `json:"created_at"`
	Headers       map[string]string `json:"headers,omitempty"`
	PayloadBytes  int               `json:"payload_bytes,omitempty"`
	Amended       bool              `json:"amended,omitempty"`  // the payload is the one that an operator had given to the record
	Withheld      bool              `json:"withheld,omitempty"` // this role may not read headers and payload
	Attempts      int               `json:"attempts"`
	FirstFailedAt time.Time         `json:"first_failed_at"`
	Error         string            `json:"error"`
	Class         string            `json:"class"`
	Resolution    string            `json:"resolution"`
	ResolvedAt    *time.Time        `json:"resolved_at"`
	ResolvedBy    string            `json:"resolved_by"`
	Reason        string            `json:"reason"`
}

func newDeadLetterJSON(l cursor.DeadLetter) deadLetterJSON {
	amended := l.Amended()
	l.Headers = processor.OfLetter(l).Headers
	return deadLetterJSON{
		ID: l.ID, Process: l.Process, At: l.At.UTC(), Position: string(l.Position), Sequence: l.Sequence,
		Table: l.Table, RecordID: l.RecordID, Key: l.Key, Type: l.Type, CreatedAt: known(l.CreatedAt),
		Headers: l.Headers, PayloadBytes: len(l.Payload), Amended: amended, Withheld: l.Withheld,
		Attempts: l.Failure.Attempts, FirstFailedAt: l.Failure.First.UTC(), Error: l.Failure.Error, Class: string(l.Failure.Class),
		Resolution: Resolution(l), ResolvedAt: known(l.ResolvedAt), ResolvedBy: l.ResolvedBy, Reason: l.Reason,
	}
}

// PrintDeadLettersJSON writes one line: {"dead_letters": […]}.
func PrintDeadLettersJSON(w io.Writer, letters []cursor.DeadLetter) error {
	document := struct {
		DeadLetters []deadLetterJSON `json:"dead_letters"`
	}{DeadLetters: []deadLetterJSON{}}
	for _, l := range letters {
		document.DeadLetters = append(document.DeadLetters, newDeadLetterJSON(l))
	}
	return json.NewEncoder(visible.JSON(w)).Encode(document)
}

// PrintDeadLetterJSON writes one dead letter, indented, with the size of its payload.
func PrintDeadLetterJSON(w io.Writer, l cursor.DeadLetter) error {
	encoder := json.NewEncoder(visible.JSON(w))
	encoder.SetIndent("", "  ")
	return encoder.Encode(newDeadLetterJSON(l))
}
