package cursor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"
)

// Config configures a Store. Zero values mean defaults.
type Config struct {
	// Schema is the schema of the cursor tables. Default "public".
	Schema string
	// Worker names this running instance. No other instance may use the name, nor may this one at its next
	// start: the name shows a change of worker. Default: host name, process id and a random part.
	Worker string
	// Timeout is how long a worker may be silent before the server frees its lock. The worker itself gives up
	// after half of that. Default 10 s, at least 1 s, at most 10 m. A lease of AcquireTx has at least 10 s more
	// than a delivery may take, because the worker cannot ask for a sign of life during it.
	//
	// No call waits longer than Timeout, or 5 s if that is more, for a connection of the pool or for an answer
	// of the database; then it returns ErrNoAnswer. A COMMIT has 30 s, since it may wait for a synchronous
	// standby.
	Timeout time.Duration

	// watch is how often a lease checks whether its session was ended. Default watchInterval; tests set it.
	watch time.Duration
	// torn is how long one of our sessions may wait after half of a command before it is ended. Default: see
	// Store.tornAfter; tests set it.
	torn time.Duration
}

const (
	defaultSchema  = "public"
	defaultTimeout = 10 * time.Second
	minTimeout     = time.Second
	maxTimeout     = 10 * time.Minute
)

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.Worker == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Worker = fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:6])
	}
	if c.watch == 0 {
		c.watch = watchInterval
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if len(c.Schema) > 63 {
		faults = append(faults, fmt.Errorf("schema %q has more than the 63 bytes that PostgreSQL keeps of a name", c.Schema))
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		faults = append(faults, fmt.Errorf("lease timeout must be between %[2]v and %[3]v, got %[1]v", c.Timeout, minTimeout, maxTimeout))
	}
	return errors.Join(faults...)
}
