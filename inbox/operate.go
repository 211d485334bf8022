package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Statements of Rename.
const (
	renameSQL = `/* inbox.rename */
UPDATE {schema}.inbox_process
SET process = $3
WHERE receiver OPERATOR(pg_catalog.=) $1 AND process OPERATOR(pg_catalog.=) $2`

	renameKeysSQL = `/* inbox.rename_keys */
UPDATE {schema}.inbox
SET process = $3
WHERE receiver OPERATOR(pg_catalog.=) $1 AND process OPERATOR(pg_catalog.=) $2`
)

// Statements of AcceptOrigin. The first one locks the process's own row, so that no stream begins meanwhile.
const (
	adoptSQL = `/* inbox.adopt */
INSERT INTO {schema}.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
VALUES ($1, $2, '', $3, 0, 0)
ON CONFLICT (receiver, process, stream) DO UPDATE SET origin = excluded.origin, epoch = 0, sequence = 0
WHERE p.origin OPERATOR(pg_catalog.<>) excluded.origin`

	adoptStreamsSQL = `/* inbox.adopt_streams */
UPDATE {schema}.inbox_process
SET origin = $3, epoch = 0, sequence = 0
WHERE receiver OPERATOR(pg_catalog.=) $1 AND process OPERATOR(pg_catalog.=) $2 AND origin OPERATOR(pg_catalog.<>) $3`
)

// AcceptOrigin has Handle accept messages of that origin from now on, and refuse those of the one before. It is for an
// operator who knows that one database has replaced another. Epochs and sequences begin again, in all streams. The
// dedup keys stay: a record that has been applied is a duplicate from either origin. So two senders that are both in
// use need two names, and not this.
func (i *Inbox) AcceptOrigin(ctx context.Context, tx pgx.Tx, process, origin string) error {
	if process == "" || origin == "" {
		return fmt.Errorf("inbox: accept an origin: a process and an origin are needed, got %q and %q", process, origin)
	}
	for _, sql := range []string{i.sql.adopt, i.sql.adoptStreams} {
		if _, err := i.exec(ctx, tx, sql, i.config.Receiver, process, origin); err != nil {
			return err
		}
	}
	return nil
}

// AcceptGap has Handle accept the record after the number through, although records up to it have not come. It is for
// an operator who knows why they have not: a skip, a record that was put aside, a promotion, a restore. stream is ""
// where all records have one order. It returns an error if nothing has come from the process in that stream.
func (i *Inbox) AcceptGap(ctx context.Context, tx pgx.Tx, process, stream string, through int64) error {
	found, err := i.exec(ctx, tx, i.sql.advance, i.config.Receiver, process, noted(stream), through)
	if err == nil && found == 0 {
		return fmt.Errorf("inbox: accept a gap: receiver %q has no record of process %q in stream %q: the first one may have any number", i.config.Receiver, process, stream)
	}
	return err
}

// Rename moves what is noted of a process to another name, as an operator did with `process rename`. Otherwise records
// that come again under the new name are applied again. Call it before a worker sends under that name. It returns an
// error if the receiver has no record under the old name, or has one under the new name.
func (i *Inbox) Rename(ctx context.Context, tx pgx.Tx, from, to string) error {
	if to == "" {
		return errors.New("inbox: rename: the new name is empty")
	}
	taken, err := i.exec(ctx, tx, i.sql.known, i.config.Receiver, to, "")
	switch {
	case err != nil:
		return err
	case taken > 0:
		return fmt.Errorf("inbox: rename process %q: receiver %q has records under the name %q already", from, i.config.Receiver, to)
	}
	moved, err := i.exec(ctx, tx, i.sql.rename, i.config.Receiver, from, to)
	switch {
	case err != nil:
		return err
	case moved == 0:
		return fmt.Errorf("inbox: rename process %q: receiver %q has no record of it", from, i.config.Receiver)
	}
	_, err = i.exec(ctx, tx, i.sql.renameKeys, i.config.Receiver, from, to)
	return err
}
