package daemon

import (
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// exposure is a connection over a network on which others could read a password.
type exposure struct{ process, problem, fix string }

// exposures returns the exposed connections of a file. The database is among them unless its connection string sets
// sslmode.
func (c Config) exposures(database *pgx.ConnConfig) []exposure {
	var all []exposure
	if host := plaintext.Postgres(database); host != "" && !given(c.Database, "sslmode", "PGSSLMODE") {
		all = append(all, exposure{"", fmt.Sprintf("the connection to %s may be unencrypted, so that the password and the records could be read on the way", host),
			"set sslmode=verify-full in the connection string, or say by another sslmode that this is meant"})
	}
	for _, p := range c.Processes {
		if sink, ok := p.Sink.Config.(sinks.Exposed); ok {
			for _, f := range sink.Exposures() {
				all = append(all, exposure{p.Name, f.Problem, f.Fix})
			}
		}
	}
	return all
}

// warn logs the exposure at each start.
func (e exposure) warn(log *slog.Logger) {
	args := []any{"fix", e.fix}
	if e.process != "" {
		args = append(args, "process", e.process)
	}
	log.Warn(e.problem, args...)
}
