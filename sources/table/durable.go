package table

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// durableSQL follows the rows. It reports whether the disk has all that they may hold. A transaction that commits with
// synchronous_commit = off is visible before its commit is on the disk. A crash of the server takes it back, and gives its id
// to another row.
const durableSQL = `/* source.durable */ SELECT pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()`

// hardenSQL makes a commit that has to wait for the disk, and with it everything before it. It takes a transaction id. The message
// is for nobody: only WAL that a transaction wrote makes its commit wait. The wait is for this server's disk alone, since a standby that is away
// must not hold up what a producer did not hold up.
const hardenSQL = `/* source.harden */
SELECT
	pg_catalog.set_config('synchronous_commit', 'local', true),
	` + prepared.RunSQL + `,
	pg_catalog.pg_logical_emit_message(true, 'ordered-dispatcher', '')`

var errAnotherRun = errors.New("the server was started anew, or it is another one: read again")

// harden returns when a crash of that run of the server takes back nothing that was read from it before.
func (s *Source) harden(ctx context.Context, run string) error {
	return answer.OnConn(ctx, s.pool, s.waits.ask, func(ctx context.Context, conn *pgxpool.Conn) error {
		results, err := prepared.Exec(ctx, conn.Conn(), statement{SQL: beginSQL}, statement{SQL: settingsSQL}, statement{SQL: hardenSQL}, statement{SQL: "COMMIT"}).ReadAll()
		if err == nil && string(results[2].Rows[0][1]) != run {
			err = errAnotherRun
		}
		return err
	})
}
