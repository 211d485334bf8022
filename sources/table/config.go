package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Order says by what records are ordered.
type Order string

const (
	// CreatedAt orders by (created_at, id).
	CreatedAt Order = "created_at"
	// ID orders by id alone: for integers assigned by a sequence.
	ID Order = "id"
)

// Config describes a source. Zero values mean defaults.
type Config struct {
	// Table is the source table, schema-qualified if need be: as in SQL, a name
	// in double quotes is taken literally, one without is folded to lower case.
	// Without a schema it is looked up in the connection's search_path, once, and
	// refused if another role could put its own table before it. Required.
	Table string
	// Meant, if set, is asked once about a Table without a schema: the result of
	// Source.Name when it was read before, by another worker perhaps; "" if that is not
	// known. A name that means another table now is refused.
	Meant func(ctx context.Context) (string, error)
	// Order of the records. Default CreatedAt.
	Order Order
	// Columns of the table.
	Columns Columns
	// Where is an SQL condition on the table's columns; records for which it is
	// not true are passed over. It is trusted as code, and sees only pg_catalog
	// unless its names are schema-qualified. Default: all records.
	Where string
	// Latency is kept between the fence and what may still be preceded: slack
	// for stamps that are not made by the database. Default 5 ms, or 1 s for a
	// column that defaults to the start of the transaction (docs/decisions).
	// At most 1 m.
	Latency time.Duration
	// MaxBytes bounds the records of one read, with key, type, id and headers: it ends
	// with the record that reaches the bound. Default 16 MiB.
	MaxBytes int
	// MaxRecordBytes bounds one record: id, payload, key, type and headers. A larger one is
	// not fetched. It has a Fault instead, which halts its process. Default 64 MiB, at
	// most 512 MiB.
	MaxRecordBytes int

	// KeysOnly is for those who look and decide, and deliver nothing: no key, type,
	// header or payload is read, and the role needs no right to them. Read returns no
	// records then; its errors, and all other methods, are those of a source without.
	KeysOnly bool

	// Logger receives the findings that weaken a promise. Default: slog.Default().
	Logger *slog.Logger
}

// Columns names the columns of the source, as in SQL (see Config.Table).
type Columns struct {
	// ID of the record: bigint, integer, smallint, uuid or text. Default "id".
	ID string
	// CreatedAt is a timestamptz. Default "created_at"; with Order ID that is read if
	// the table has it as a timestamptz, and does without otherwise. Dedup keys hold
	// the time where it is read.
	CreatedAt string
	// Key, Type and Headers are optional. Headers is a JSON object whose values
	// are strings.
	Key, Type, Headers string
	// Payload is the column delivered. Default: the whole row as JSON.
	Payload string
}

const (
	defaultLatency   = 5 * time.Millisecond
	defaultTxLatency = time.Second
	maxLatency       = time.Minute
	defaultMaxBytes  = 16 << 20

	defaultMaxRecordBytes = 64 << 20
	maxMaxRecordBytes     = 512 << 20
)

func (c Config) withDefaults() Config {
	if c.Order == "" {
		c.Order = CreatedAt
	}
	if c.Columns.ID == "" {
		c.Columns.ID = "id"
	}
	if c.Columns.CreatedAt == "" && c.Order == CreatedAt {
		c.Columns.CreatedAt = "created_at"
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = defaultMaxRecordBytes
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns every fault at once.
func (c Config) validate() error {
	var faults []error
	if c.Order != CreatedAt && c.Order != ID {
		faults = append(faults, fmt.Errorf("order %q is neither created_at nor id", c.Order))
	}
	if c.Latency < 0 || c.Latency > maxLatency {
		faults = append(faults, fmt.Errorf("latency %v is not within 0 and %v", c.Latency, maxLatency))
	}
	if c.MaxBytes < 0 {
		faults = append(faults, fmt.Errorf("max bytes %d is negative", c.MaxBytes))
	}
	if c.MaxRecordBytes < 1 || c.MaxRecordBytes > maxMaxRecordBytes {
		faults = append(faults, fmt.Errorf("max record bytes %d is not between 1 and %d", c.MaxRecordBytes, maxMaxRecordBytes))
	}
	if _, err := parseName(c.Table); err != nil {
		faults = append(faults, fmt.Errorf("table: %w", err))
	}
	for _, column := range []string{c.Columns.ID, c.Columns.CreatedAt, c.Columns.Key, c.Columns.Type, c.Columns.Headers, c.Columns.Payload} {
		if column == "" {
			continue
		}
		if name, err := parseName(column); err != nil {
			faults = append(faults, fmt.Errorf("column: %w", err))
		} else if len(name) != 1 {
			faults = append(faults, fmt.Errorf("column %q: a column has no qualifier", column))
		}
	}
	return errors.Join(faults...)
}
