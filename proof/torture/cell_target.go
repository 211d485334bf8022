package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
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
	epoch        bigint NOT NULL,
	position     text COLLATE "C" NOT NULL,
	taken_out    boolean NOT NULL DEFAULT false -- by an operator, after a comparison with the source
);`

func openCellTarget(ctx context.Context, _ history.Clock) (cellReceiver, error) {
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: map[string]string{"shared_buffers": "16MB", "autovacuum": "off"}})
	if err != nil {
		return nil, err
	}
	l := ledger{&database{server: server}}
	sink, err := sql.NewRemote(sql.Config{URL: l.url(), Statements: []string{"SELECT 1"}})
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
          INSERT INTO public.ledger (process_name, key, payload, dedup_key, sequence, epoch, position)
          VALUES (@process, @key, @payload, @dedup_key, @sequence, @epoch, @position)`, l.url())}}
}

const ledgerRowsSQL = `/* torture.ledger */
SELECT process_name, key, payload, dedup_key, sequence, epoch, taken_out
FROM public.ledger
ORDER BY n
LIMIT 10000000`

func (l ledger) read(ctx context.Context) (all []history.Receipt, err error) {
	err = l.do(ctx, func(conn *pgx.Conn) error {
		var payload string
		r := history.Receipt{Receiver: l.name()}
		rows, _ := conn.Query(ctx, ledgerRowsSQL)
		_, err := pgx.ForEachRow(rows, []any{&r.Process, &r.Key, &payload, &r.DedupKey, &r.Sequence, &r.Epoch, &r.TakenOut}, func() error {
			r.Hash = digest([]byte(payload))
			all = append(all, r)
			return nil
		})
		return err
	})
	return all, err
}

func (l ledger) close(context.Context) error { return l.database.close() }

// correction is what the error proposes of a target that has what the source may have lost: the SQL, and the position in it.
var correction = regexp.MustCompile(`UPDATE "public"\.ordered_dispatcher_applied SET position = '([^']*)', dedup_key = NULL, recent = NULL WHERE process_name = '[^']*'`)

// stands is where the target stood when it asked for that.
var stands = regexp.MustCompile(`The target is at (\S+), and what`)

// correct does what that error asks for: it takes out of the target what is not in the table, and what follows the position
// from which records shall come again, and notes that position there.
func (c *cell) correct(ctx context.Context, process, reason, update, position string) error {
	stood := stands.FindStringSubmatch(reason)
	if stood == nil {
		return errors.New("the error does not name the target's position")
	}
	var rows []string
	err := c.database.do(ctx, func(conn *pgx.Conn) error {
		found, _ := conn.Query(ctx, "SELECT key FROM app.bare ORDER BY id LIMIT 10000000")
		keys, err := pgx.CollectRows(found, pgx.RowTo[string])
		rows = keys
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range c.receivers {
		if l, ok := r.(ledger); ok {
			return l.takeOut(ctx, process, stood[1], update, position, rows)
		}
	}
	return nil
}

const standsSQL = `/* torture.stands */
SELECT position FROM public.ordered_dispatcher_applied WHERE process_name = $1 FOR UPDATE`

// takeOut is one transaction, which what a worker writes meanwhile waits for. A target that has gone on since is left alone.
func (l ledger) takeOut(ctx context.Context, process, stood, update, position string, rows []string) error {
	return l.do(ctx, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var now string
			if err := tx.QueryRow(ctx, standsSQL, process).Scan(&now); err != nil || now != stood {
				return err
			}
			if _, err := tx.Exec(ctx, update); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE public.ledger SET taken_out = true WHERE process_name = $1 AND NOT taken_out AND (position > $2 OR key <> ALL ($3))",
				process, position, rows)
			return err
		})
	})
}
