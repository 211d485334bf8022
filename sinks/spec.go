package sinks

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Spec describes one kind of sink to a daemon.
type Spec struct {
	// Name is the key below `sink` in the configuration file.
	Name string
	// Page is the name of the page of documentation, below docs/sinks. Only `make reference` of this repository uses it;
	// leave it empty in a sink of your own.
	Page string
	// New returns a pointer to an empty Config struct. The daemon sets the fields that have a knob tag.
	New func() Config
}

// Config is the configuration of one sink.
type Config interface {
	// Validate returns all faults at once that can be seen without the receiver, and quotes no secret.
	Validate() error
	// Settings decide where the records go, by name. The audit keeps them, and a change of one needs a restart. They
	// hold no secret.
	Settings() map[string]string
	// Open makes the sink. It connects to nothing yet.
	Open(Environment) (Opened, error)
}

// Environment is the part of the daemon that a sink may use.
type Environment struct {
	// Stdout belongs to the sink that writes records to it.
	Stdout io.Writer
	// Logger takes messages of the receiver other than its answers.
	Logger *slog.Logger
	// Checkpoint is how many records a call may have, from 1 on.
	Checkpoint int
}

// Opened is a sink under the guarantee that it can keep: exactly one of Each, Pipeline and InTx is set.
type Opened struct {
	Each     processor.Sink      // one record at a time
	Pipeline processor.BatchSink // several records may be on their way
	InTx     processor.TxSink    // in the transaction that advances the cursor
	// Timeout bounds one call. Default: the processor's.
	Timeout time.Duration
}

// Sink returns the one that is set.
func (o Opened) Sink() any {
	switch {
	case o.Each != nil:
		return o.Each
	case o.Pipeline != nil:
		return o.Pipeline
	default:
		return o.InTx
	}
}

// Finding is something that is wrong, or could be better.
type Finding struct {
	Severity cursor.Severity
	Problem  string
	// Fix is the next step; "" if there is none.
	Fix string
}

// Checked is a Config that can be compared with its receiver. Check returns an error if the receiver could not be
// asked.
type Checked interface {
	Check(ctx context.Context, process string, around Around) ([]Finding, error)
}

// Around is the context of a check, besides its own sink.
type Around struct {
	// Cursors are the connections to the database of the cursor tables.
	Cursors *pgxpool.Pool
	// Others are the sinks of the other processes of the file, by process.
	Others map[string]Config
}

// Confidential is a Config with settings that decide where records go and may hold a secret. The audit keeps a digest
// of each.
type Confidential interface {
	Confidential() map[string]string
}

// Enveloped is a Config whose sink may put the payload into a body of another form. A receiver that asks for a record gets
// that body.
type Enveloped interface {
	Envelope(d processor.Delivery) (body []byte, contentType string)
}

// Exclusive is a Config whose receiver has something that belongs to one process. Two processes that share it would
// put each other out by turns. Owned names it, and how a process gets its own; "" if there is none.
type Exclusive interface {
	Owned(process string) (what, fix string)
}

// Exposed is a Config whose secrets others may see, for example on the network. No Finding refuses the start.
type Exposed interface {
	Exposures() []Finding
}

// Filed is a Config that names files that no tag declares. secret files contain a secret, and trusted files decide
// which code is run or who is trusted.
type Filed interface {
	Files() (secret, trusted []string)
}

// Posted is a Config whose receiver is a PostgreSQL server, with one connection for each process.
type Posted interface {
	// DatabaseURL is its connection string; "" for the database of the cursor.
	DatabaseURL() string
}

// Privileged is a Config whose sink needs privileges in the database of the cursor: `grants` prints them, and `doctor`
// names those that are missing.
type Privileged interface {
	Needs(ctx context.Context, cursors *pgxpool.Pool) (Needs, error)
}

// Needs are privileges of a role, and which of them could not be found out.
type Needs = privilege.Needs

// Privilege is a right on one object of a database.
type Privilege = privilege.Privilege

// PrivilegedElsewhere is a Config whose sink needs privileges in another database.
type PrivilegedElsewhere interface {
	// NeedsElsewhere returns the SQL to be run there, as far as the needs were found out; "" if there is none.
	NeedsElsewhere(ctx context.Context) (string, error)
}

// Untestable is a Config to whose receiver no test can go (processor.Test) without harm to the records. Untestable
// returns why, or "" if one can.
type Untestable interface{ Untestable() string }

// Pending is a sink, not a Config: it may have records on their way between two calls. The daemon does not make it
// anew meanwhile.
type Pending interface{ Pending() bool }

// Credentials returns the Finding about credentials that go to a host without TLS; fix names the alternative.
func Credentials(host, fix string) []Finding {
	if host == "" {
		return nil
	}
	return []Finding{{cursor.Warn, "credentials are sent to " + host + " in the clear, so others on the network could read them", "use " + fix}}
}

// CallTimeout returns how long one call may take for a sink that ends a call by a timeout of its own. It is long
// enough for that end, which reports whether anything was sent.
func CallTimeout(timeout time.Duration) time.Duration {
	const margin = 5 * time.Second
	return min(timeout+margin, MaxTimeout)
}

// WindowTimeout is CallTimeout for a sink that bounds each answer of a window: a call may have many records.
func WindowTimeout(timeout time.Duration) time.Duration {
	const least = 30 * time.Second
	return max(CallTimeout(timeout), least)
}

// MaxTimeout is the longest time that one call may take.
const MaxTimeout = time.Hour
