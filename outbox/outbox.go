package outbox

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
)

// DefaultMaxBytes is the default of Config.MaxBytes.
const DefaultMaxBytes = 1 << 20

// Config describes an outbox. Zero values mean defaults.
type Config struct {
	// Table is the name of the table, with its schema if need be, as the catalog spells it: each part has between 1
	// and 63 bytes. Default {"public", "outbox"}.
	Table pgx.Identifier
	// MaxBytes bounds one record: type, aggregate, key, payload and headers, and 19 bytes for its id. JSON counts as
	// PostgreSQL prints it. So a source whose max_record_bytes is not less reads each record. Default DefaultMaxBytes.
	MaxBytes int
	// Raw is for a table whose payload is a bytea. Sinks then get the bytes of a payload unchanged.
	Raw bool
	// Partitioned is for a table that Create and SQL make with a partition for each day, by UTC. A record can only be
	// added on a day that has one: see MakePartitions.
	Partitioned bool
	// CompressAbove compresses payloads with more bytes with zstd, if that makes them smaller. The row then has the
	// header content-encoding: zstd. It needs Raw. Default: no payload is compressed.
	CompressAbove int
	// ClaimAbove puts payloads with more bytes, compressed or not, into Claims before the insert. The row then has a
	// reference instead, and the header claim-check: see package claim. Default: none. MaxBytes bounds such a payload,
	// too.
	ClaimAbove int
	// Claims is the store for ClaimAbove. Call Collect now and then, which removes what rolled back transactions leave
	// there.
	Claims claim.Store
}

// Outbox writes records into one table. It is safe for concurrent use.
type Outbox struct {
	config Config
	insert string
}

// New returns the outbox that config describes. It does not touch the database.
func New(config Config) (*Outbox, error) {
	if len(config.Table) == 0 {
		config.Table = pgx.Identifier{"public", "outbox"}
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.MaxBytes < 0 {
		return nil, fmt.Errorf("outbox: MaxBytes is %d: choose 1 or more", config.MaxBytes)
	}
	if len(config.Table) > 2 {
		return nil, fmt.Errorf("outbox: Table is %q: give a name, or a schema and a name", config.Table)
	}
	for _, part := range config.Table {
		if err := pgname.Check(part); err != nil {
			return nil, fmt.Errorf("outbox: Table is %q: %w", config.Table, err)
		}
	}
	if err := config.validatePacking(); err != nil {
		return nil, err
	}
	return &Outbox{config: config, insert: insertInto(config)}, nil
}

var standard, _ = New(Config{})

// Add writes records into the table public.outbox, in the transaction tx: see Outbox.Add.
func Add(ctx context.Context, tx pgx.Tx, records ...Record) error {
	return standard.Add(ctx, tx, records...)
}

// AddSQL is Add for a transaction of database/sql, with any driver for PostgreSQL.
func AddSQL(ctx context.Context, tx *sql.Tx, records ...Record) error {
	return standard.AddSQL(ctx, tx, records...)
}

// Add writes records in the transaction tx, in one statement. They are delivered in this order, once tx is committed.
// Call it after the statement that locks the business row: so two transactions that change the row write their records
// in the order of their changes.
//
// A *RecordError means that a record was refused before anything was sent: the transaction can go on. Commit it only if
// you can do without the record. After any other error roll back, to a savepoint or the whole: the server refuses to go
// on, it wrote another number of records, or the store of Config.Claims is away. A later attempt may succeed.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, records ...Record) error {
	return o.add(ctx, records, func(list string) (int64, error) {
		tag, err := tx.Exec(ctx, o.insert, list)
		return tag.RowsAffected(), err
	})
}

// AddSQL is Add for a transaction of database/sql, with any driver for PostgreSQL.
func (o *Outbox) AddSQL(ctx context.Context, tx *sql.Tx, records ...Record) error {
	return o.add(ctx, records, func(list string) (int64, error) {
		result, err := tx.ExecContext(ctx, o.insert, list)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
}

func (o *Outbox) add(ctx context.Context, records []Record, insert func(list string) (written int64, err error)) error {
	if len(records) == 0 {
		return nil
	}
	list, err := o.encode(ctx, records)
	if err != nil {
		return err
	}
	written, err := insert(list)
	if err == nil && written != int64(len(records)) {
		err = fmt.Errorf("the server wrote %d rows: a trigger or a rule of the table changes what is inserted: roll back, and remove it", written)
	}
	if err != nil {
		return fmt.Errorf("add %d records to %s: %w", len(records), o.config.Table.Sanitize(), err)
	}
	return nil
}
