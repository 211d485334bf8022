package daemon

import (
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Config holds the content of a configuration file. Zero values mean defaults.
type Config struct {
	// Database is the connection string of the PostgreSQL that holds the tables; "" if the file names none.
	//
	// In the file: the connection string of the PostgreSQL that holds the tables. Default: the variable `DATABASE_URL`.
	Database string `knob:"database" like:"database: ${DATABASE_URL}" secret:"true"`
	// Schema is the schema of the cursor tables.
	//
	// In the file: the schema of the cursor tables.
	Schema string `knob:"schema" default:"public"`
	// ListenToken is the token with which receivers may ask a worker for records again, or several with spaces between;
	// "" if they may not.
	//
	// In the file: the token with which receivers may [ask for records again](docs/operations.md#records-again) at the
	// address of `--listen`, or several with spaces between. Default: they may not.
	ListenToken string `knob:"listen_token" like:"listen_token: ${LISTEN_TOKEN}" secret:"true"`
	// Processes are in the order of the file.
	//
	// In the file: the processes by name, with the keys below.
	Processes []Process `knob:"processes" need:"processes: {my_process: {source: {…}, sink: {…}}}"`

	// Rules are in the order of the file.
	//
	// In the file: what becomes of rows that every process has delivered, by the name of the table, with the keys below.
	// Default: they stay.
	Rules []TableRule `knob:"retention" like:"retention: {public.bookings: {keep: 168h}}"`

	// Admin has the settings of the console.
	//
	// In the file: who may use the [console](docs/console.md) and its API at the address of `--listen`. Without it, this
	// machine may look, and no one may decide.
	Admin Admin `knob:"admin" like:"admin: {operate_tokens: {alice: ${ALICE_TOKEN}}}"`

	// file is the name of the file; "" if the configuration has none.
	file string
	// secretFiles are the files from which secrets were read, or will be.
	secretFiles []string
	// trustedFiles are the files that decide whom the program trusts.
	trustedFiles []string
	// databaseFiles are the files to which references in Database point, with their content.
	databaseFiles map[string]string
	// stores opens the object stores that the file names.
	stores *storeSet
	// renewal is nil if no reference points to a file.
	renewal *renewal
	// conns bounds the connections of one pool; 0: as many as the processes need.
	conns int32
}

// Apart returns the configuration for a part of the program that shares nothing with the processes: each of its pools
// has at most conns connections, and it closes object stores of its own.
func (c Config) Apart(conns int32) Config {
	if c.stores != nil {
		c.stores = newStoreSet(c.stores.kinds)
	}
	c.Processes = slices.Clone(c.Processes)
	for i := range c.Processes {
		c.Processes[i].stores = c.stores
	}
	c.conns = conns
	return c
}

// TableRule is one entry of the key retention.
type TableRule struct {
	// Table is the key of the entry: the table as source.table of a process has it.
	Table string
	rules.Rule
}

// Process is one entry of the key processes.
type Process struct {
	// Name is the key of the entry.
	Name string
	// Source is what to read.
	Source table.Config `knob:"source" need:"source: {table: public.bookings}"`
	// Sink is the receiver of the records.
	//
	// In the file: one of the [receivers](README.md#receivers). Each has a page with its own keys.
	Sink Sink `knob:"sink" need:"sink: {webhook: {url: \"https://…\"}}"`
	// Claims is the store of the objects of claim checks: a directory or a URL; "" if references are passed on.
	//
	// In the file: the directory with the payloads of [claim checks](docs/producers.md#large-payloads), or the URL of
	// an [object store](docs/producers.md#object-stores). They are read there before a record goes out. Default: the
	// receiver gets the reference.
	Claims string `knob:"claims" like:"claims: /var/lib/ordered-dispatcher/claims"`
	// Decompress replaces payloads with the header content-encoding: zstd by what they were.
	//
	// In the file: `decompress` payloads that have the header `content-encoding: zstd`, or `pass` them on with that
	// header.
	Decompress bool `knob:"compressed" true:"decompress" false:"pass"`
	// Upcast has a jq program by type and version.
	//
	// In the file: programs in jq, by type and version. Each turns a payload of its version into the next one: see
	// [versions](docs/producers.md#versions). Default: none.
	Upcast map[string]string `knob:"upcast" like:"upcast: {booking.created@1: '.seats = (.count // 1) | del(.count)'}"`
	// Shadow is how the calls of the sink are recorded; nil if they are made.
	//
	// In the file: [record the calls](docs/read-models.md#a-sink-in-shadow) of the sink instead of making them. The name
	// of the process must end with `@shadow`. Default: calls are made.
	Shadow *Shadow `knob:"shadow"`
	// Config has the other keys. Those that are not set are zero: see filled.
	processor.Config

	// files are the files to which references of the process point, with their content.
	files map[string]string
	// stores opens Claims.
	stores *storeSet
}

// filled returns the process with the defaults of all settings.
func (p Process) filled() Process {
	p.Source = p.Source.Named() // before the defaults: see Named
	knob.Fill(&p.Source)
	knob.Fill(&p.Config)
	return p
}

// Names returns the names of the processes in the order of the file.
func (c Config) Names() []string {
	names := make([]string, len(c.Processes))
	for i, p := range c.Processes {
		names[i] = p.Name
	}
	return names
}
