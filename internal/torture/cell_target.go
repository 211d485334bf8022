package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// ledger is another database, which nothing befalls, that a process writes to exactly once.
type ledger struct{ *database }

// ledgerSQL has no key: the judge counts.
const ledgerSQL = `
CREATE TABLE public.ledger (
	n            bigint GENERATED ALWAYS AS IDENTITY,
	process_name text NOT NULL,
	key          text NOT NULL,
	payload      text NOT NULL,
	dedup_key    text NOT NULL,
	sequence     bigint NOT NULL,
	epoch        bigint NOT NULL
);`

func openCellTarget(ctx context.Context, _ history.Clock) (cellReceiver, error) {
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: map[string]string{"shared_buffers": "16MB", "autovacuum": "off"}})
	if err != nil {
		return nil, err
	}
	l := ledger{&database{server: server}}
	sink, err := sql.NewRemote(sql.RemoteConfig{URL: l.url(), Statement: "SELECT 1"})
	if err == nil {
		err = l.do(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, ledgerSQL+sink.Tables(), pgx.QueryExecModeSimpleProtocol)
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

func (l ledger) name() string { return "table of another database" }

func (l ledger) processes() []cellProcess {
	return []cellProcess{{name: "cell_bare_target", table: "bare", checkpoint: 3, once: true, sink: fmt.Sprintf(`      sql:
        url: %q
        statement: >-
          INSERT INTO public.ledger (process_name, key, payload, dedup_key, sequence, epoch)
          VALUES (@process, @key, @payload, @dedup_key, @sequence, @epoch)`, l.url())}}
}

const ledgerRowsSQL = `/* torture.ledger */
SELECT process_name, key, payload, dedup_key, sequence, epoch
FROM public.ledger
ORDER BY n
LIMIT 10000000`

func (l ledger) read(ctx context.Context) (all []history.Receipt, err error) {
	err = l.do(ctx, func(conn *pgx.Conn) error {
		var payload string
		r := history.Receipt{Receiver: l.name()}
		rows, _ := conn.Query(ctx, ledgerRowsSQL)
		_, err := pgx.ForEachRow(rows, []any{&r.Process, &r.Key, &payload, &r.DedupKey, &r.Sequence, &r.Epoch}, func() error {
			r.Hash = digest([]byte(payload))
			all = append(all, r)
			return nil
		})
		return err
	})
	return all, err
}

func (l ledger) close(context.Context) error { return l.database.close() }
