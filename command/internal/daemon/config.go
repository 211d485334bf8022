package daemon

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Config is what a configuration file says. Zero values mean defaults.
type Config struct {
	// Database is the connection string; "" if the file names none.
	Database string
	// Schema of the cursor tables. Default "public".
	Schema string
	// Processes in the order of the file.
	Processes []Process
	// file is its name; "" if it has none.
	file string
	// secretFiles are those that secrets were read from, or will be.
	secretFiles []string
	// trustedFiles say who is trusted.
	trustedFiles []string
	// databaseFiles are those that references in Database name, with what they held.
	databaseFiles map[string]string
	// renewal is nil if no reference names a file.
	renewal *renewal
}

// Process is one entry below processes.
type Process struct {
	Name   string
	Source table.Config
	Sink   Sink

	// Start is "" if the file does not say where.
	Start cursor.Position

	Batch         int
	Checkpoint    int
	Poll          time.Duration
	Retry         processor.Retry
	Limit         processor.Limit
	Breaker       processor.Breaker
	DeadLetter    bool
	DeadLetterRun int
	HaltOnTimeout bool

	// files are those that references of the process name, with what they held.
	files map[string]string
}

// Names returns the names of the processes in the order of the file.
func (c Config) Names() []string {
	names := make([]string, len(c.Processes))
	for i, p := range c.Processes {
		names[i] = p.Name
	}
	return names
}

// Bounds of what a file may say. The packages that take the values check them
// too, but cannot say on which line they stand; TestBounds holds both equal.
const (
	defaultBatch = 500
	maxBatch     = 10_000
	minPoll      = 5 * time.Millisecond
	maxPoll      = time.Minute
	minLatency   = time.Microsecond
	maxLatency   = time.Minute

	maxRecordBytes = 512 << 20

	minRetryDelay = time.Millisecond
	maxRetryDelay = 24 * time.Hour
	maxAttempts   = 1_000_000_000
	maxCooldown   = 24 * time.Hour
	minCallTime   = time.Millisecond
	maxCallTime   = time.Hour
	maxNameBytes  = 63
	maxWindow     = 10_000

	// defaultJitter spreads the attempts of many processes that failed together.
	defaultJitter = 20 // percent
)
