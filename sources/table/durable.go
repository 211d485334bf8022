package table

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// durableSQL comes after the rows. It reports whether the disk has every commit that they may show. A transaction that commits with
// synchronous_commit = off is visible before its commit is on the disk. A crash of the server takes the row back, and another row
// gets its id. It also says where the log ends that has them, in bytes.
const durableSQL = `/* source.durable */
SELECT log <= pg_current_wal_flush_lsn(), pg_wal_lsn_diff(log, '0/0')::bigint FROM (SELECT pg_current_wal_insert_lsn() AS log) now`

// hardenSQL makes a commit that waits for the disk. When it returns, the disk has everything that was written before. It takes a
// transaction id. No reader needs the message: a commit waits only if its transaction has written to the log. It waits for this
// server's disk and for no standby: a standby that is away must not hold up rows that their producer did not hold up.
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
