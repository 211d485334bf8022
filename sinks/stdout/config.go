package stdout

import (
	"errors"
	"io"
)

// Config describes a sink.
type Config struct {
	// Writer takes the lines, one Write for each. If it has a method
	// Flush() error, that is called after each line. Required; usually os.Stdout.
	Writer io.Writer
}

// validate returns all faults at once.
func (c Config) validate() error {
	if c.Writer == nil {
		return errors.New("the writer is missing: set it to os.Stdout")
	}
	return nil
}
