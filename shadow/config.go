package shadow

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Config describes what is recorded.
type Config struct {
	// Table is the schema and the name of the table: see Create. Required.
	Table pgx.Identifier
	// Sink is the sink whose calls are recorded. Required.
	Sink sinks.Renderer
	// As is the name of the process that the recorded calls have. Default: the one of the process that records, or of Other.
	As string
	// Other is the version to compare with. nil: compare with none.
	Other *Version
}

// Version is a live process, as far as its calls depend on it.
type Version struct {
	// Process is its name. Required.
	Process string
	// Sink is its sink. Required.
	Sink sinks.Renderer
	// Prepare makes records ready for the sink: see processor.Config. nil: they go out as they are.
	Prepare processor.Prepare
}

func (c Config) validate() error {
	var faults []error
	if len(c.Table) != 2 || c.Table[0] == "" || c.Table[1] == "" {
		faults = append(faults, fmt.Errorf("the field Table is %q: give a schema and a name", c.Table))
	}
	if c.Sink == nil {
		faults = append(faults, errors.New("the field Sink is missing"))
	}
	if c.Other != nil && (c.Other.Process == "" || c.Other.Sink == nil) {
		faults = append(faults, errors.New("the field Other needs a Process and a Sink"))
	}
	return errors.Join(faults...)
}
