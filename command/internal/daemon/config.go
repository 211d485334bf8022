package daemon

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Config is what a configuration file says. Zero values mean defaults.
type Config struct {
	// Database is the connection string of the PostgreSQL that holds the tables; "" if the file names none.
	//
	// In the file: the connection string of the PostgreSQL that holds the tables. Default: the variable `DATABASE_URL`.
	Database string `knob:"database" like:"database: ${DATABASE_URL}" secret:"true"`
	// Schema is where the cursor tables are.
	//
	// In the file: the schema of the cursor tables.
	Schema string `knob:"schema" default:"public"`
	// Processes in the order of the file.
	//
	// In the file: the processes by name, with the keys below.
	Processes []Process `knob:"processes" need:"processes: {my_process: {source: {…}, sink: {…}}}"`

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
	// Name is its key there.
	Name string
	// Source is what to read.
	Source table.Config `knob:"source" need:"source: {table: public.bookings}"`
	// Sink is where the records go.
	//
	// In the file: one of the [receivers](README.md#receivers). Each has a page with its own keys.
	Sink Sink `knob:"sink" need:"sink: {webhook: {url: \"https://…\"}}"`
	// Config has the other keys. What they do not set is filled in by build.
	processor.Config

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
