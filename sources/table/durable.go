package table

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// durableSQL comes after the rows. It reports whether the disk has every commit that the rows may show. A transaction
// that commits with synchronous_commit = off is visible before its commit is on the disk. A crash of the server takes
// the row back, and another row gets its id. It also returns the end, in bytes, of the log that has those commits.
const durableSQL = `/* source.durable */
SELECT log <= pg_current_wal_flush_lsn(), pg_wal_lsn_diff(log, '0/0')::bigint FROM (SELECT pg_current_wal_insert_lsn() AS log) now`

// hardenSQL makes a commit that waits for the disk. When it returns, the disk has everything that was written before.
// It takes a transaction id. No reader needs the message: a commit waits only if its transaction has written to the
// log. It waits for this server's disk and not for a standby: a standby that is away must not hold up rows that their
// producer did not hold up.
const hardenSQL = `/* source.harden */
SELECT
	pg_catalog.set_config('synchronous_commit', 'local', true),
	` + prepared.RunSQL + `,
	pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::bigint,
	pg_catalog.pg_logical_emit_message(true, 'ordered-dispatcher', '')`

var errAnotherRun = errors.New("the server was restarted, or it is another one: read again")

// harden waits until the disk has everything that was read before. It returns how far the disk has the log then.
// After that, a crash of that run of the server takes none of it back.
func (s *Source) harden(ctx context.Context, run string) (log int64, err error) {
	err = answer.OnConn(ctx, s.pool, s.waits.ask, func(ctx context.Context, conn *pgxpool.Conn) error {
		results, err := prepared.Exec(ctx, conn.Conn(), statement{SQL: beginSQL}, statement{SQL: settingsSQL}, statement{SQL: hardenSQL}, statement{SQL: "COMMIT"}).ReadAll()
		if err != nil {
			return err
		}
		values := results[2].Rows[0]
		if string(values[1]) != run {
			return errAnotherRun
		}
		log, err = strconv.ParseInt(string(values[2]), 10, 64)
		return err
	})
	return log, err
}
