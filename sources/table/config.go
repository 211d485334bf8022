package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Order names the columns that order the records.
type Order string

const (
	// CreatedAt orders by (created_at, id).
	CreatedAt Order = "created_at"
	// ID orders by id alone: for integers assigned by a sequence.
	ID Order = "id"
)

// Preset names the columns of a known table.
type Preset string

const (
	// Outbox is the table of package outbox: Key, Type, Headers and Payload have the columns of these names.
	Outbox Preset = "outbox"
	// Debezium is the table of Debezium's outbox event router: aggregateid is the Key, type the Type, payload the
	// Payload. https://debezium.io/documentation/reference/stable/transformations/outbox-event-router.html
	Debezium Preset = "debezium"
)

// columns returns the columns of the preset, if it is known.
func (p Preset) columns() Columns {
	switch p {
	case Outbox:
		return Columns{Key: "key", Type: "type", Headers: "headers", Payload: "payload"}
	case Debezium:
		return Columns{Key: "aggregateid", Type: "type", Payload: "payload"}
	default:
		return Columns{}
	}
}

// Named returns the configuration with the columns of its Preset. Defaults come after that: a preset may name a column
// that has one.
func (c Config) Named() Config {
	c.Columns = c.Columns.or(c.Preset.columns())
	return c
}

// Config describes a source. Zero values mean defaults. Where a field has a knob tag, the tag names its default and
// its bounds.
type Config struct {
	// Table is the source table, with its schema if need be. As in SQL, a name in double quotes is taken literally,
	// and one without them is folded to lower case. A name without a schema is looked up once in the connection's
	// search_path. It is refused if another role could put its own table before this one. Required.
	//
	// In the file: the table with its schema, as in SQL: `sales.orders`, `sales."My Table"`. Without a schema the
	// dispatcher [looks it up](docs/operations.md#which-table-is-read).
	Table string `knob:"table" need:"table: public.bookings"`
	// Order of the records. Default CreatedAt.
	//
	// In the file: `created_at` orders by `(created_at, id)`, `id` by an integer that a sequence assigns.
	Order Order `knob:"order" default:"created_at" oneof:"created_at id"`
	// Preset names the columns of a known table, beside those that Columns has.
	//
	// In the file: the table is a known one: `outbox` is [ours](docs/producers.md), `debezium` is the table of its
	// [outbox event router](docs/producers.md#from-debezium). It names the columns. A name under `columns` overrides its
	// name. Default: none.
	Preset Preset `knob:"preset" oneof:"outbox debezium"`
	// Columns of the table.
	//
	// In the file: the names of the columns.
	Columns Columns `knob:"columns"`
	// Where is an SQL condition on the table's columns. Records for which it is not true are passed over. It is
	// trusted as code. It sees only pg_catalog unless its names are schema-qualified. Default: all records.
	//
	// In the file: a SQL condition on columns that do not change after the insert. It is trusted like code. It must not
	// hold a `${…}` reference, because operators see it. Default: all rows.
	Where string `knob:"where" like:"where: \"status = 'confirmed'\""`
	// Latency is kept between the fence and the place where rows may still appear. It is slack for stamps that the
	// database does not make. Default 5 ms, or 1 s for a column that defaults to the start of the transaction
	// (docs/decisions).
	//
	// In the file: how long a record waits before it is read, for times that are older than their insert. Default: `5ms`.
	// With a `now()` default it is `1s`, and the role needs
	// [`pg_read_all_stats`](docs/guarantees.md#stamps-of-the-start-of-a-transaction).
	Latency time.Duration `knob:"latency" min:"1us" max:"1m"`
	// MaxRecordBytes bounds one record: id, payload, key, type and headers. The source does not fetch a larger one. It
	// gives that record a Fault, which halts its process.
	//
	// In the file: a larger record is not fetched. Its process halts and names it.
	MaxRecordBytes int `knob:"max_record_bytes" default:"67_108_864" min:"1" max:"536_870_912"`

	// Meant, if set, is asked once about a Table without a schema. It returns the result of an earlier Source.Name,
	// perhaps of another worker; "" if that is not known. A name that means another table now is refused.
	Meant func(ctx context.Context) (string, error)
	// MaxBytes bounds the records of one read, with key, type, id and headers. The read ends with the record that
	// reaches the bound.
	MaxBytes int `knob:"-max_bytes" default:"16_777_216" min:"1"`
	// KeysOnly is for callers that look and decide, and deliver nothing. The source then reads no key, type, header or
	// payload, and the role needs no right to them. Read returns no records. Its errors, and all other methods, are
	// the same as without KeysOnly.
	KeysOnly bool
	// Delivered is for callers that show records again. Read then waits for no writer, and
	// returns all rows that are committed. So the caller must not go past the place to which the process has come.
	Delivered bool

	// Logger receives the findings that weaken a promise. Default: slog.Default().
	Logger *slog.Logger
}

// Columns names the columns of the source, as in SQL (see Config.Table).
type Columns struct {
	// ID of the record: bigint, integer, smallint, uuid or text.
	//
	// In the file: the id of a record: bigint, integer, smallint, uuid or text.
	ID string `knob:"id" default:"id"`
	// CreatedAt is a timestamptz. Default "created_at". With Order ID the source reads the default column if the table
	// has it as a timestamptz, and otherwise works without it. Dedup keys hold the time where it is read.
	//
	// In the file: a timestamptz. Default: `created_at`; with order `id`, that only if the table has it.
	CreatedAt string `knob:"created_at"`
	// Key is the column with the key of a record, such as a customer. Receivers get the key. Kafka keeps the order of
	// each key, and templates of addresses and topics can use it. Default: none.
	Key string `knob:"key"`
	// Type is the column with the type of a record. Default: none.
	Type string `knob:"type"`
	// Headers is a column with a JSON object of at most 1,000 names. Default: none.
	Headers string `knob:"headers"`
	// Payload is the column delivered. Default: the whole row as JSON.
	Payload string `knob:"payload"`
}

// all returns all columns.
func (c *Columns) all() []*string {
	return []*string{&c.ID, &c.CreatedAt, &c.Key, &c.Type, &c.Headers, &c.Payload}
}

// or returns the columns, and those of the others where there is none.
func (c Columns) or(others Columns) Columns {
	theirs := others.all()
	for i, column := range c.all() {
		*column = cmp.Or(*column, *theirs[i])
	}
	return c
}

const (
	defaultLatency   = 5 * time.Millisecond
	defaultTxLatency = time.Second
)

func (c Config) withDefaults() Config {
	c = c.Named()
	knob.Fill(&c)
	if c.Columns.CreatedAt == "" && c.Order == CreatedAt {
		c.Columns.CreatedAt = "created_at"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns every fault at once.
func (c Config) validate() error {
	faults := []error{knob.Check(c)}
	if _, err := parseName(c.Table); err != nil && c.Table != "" {
		faults = append(faults, fmt.Errorf("table: %w", err))
	}
	for _, column := range c.Columns.all() {
		if *column == "" {
			continue
		}
		if name, err := parseName(*column); err != nil {
			faults = append(faults, fmt.Errorf("column: %w", err))
		} else if len(name) != 1 {
			faults = append(faults, fmt.Errorf("column %q: a column has no qualifier", *column))
		}
	}
	return errors.Join(faults...)
}
