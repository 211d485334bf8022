package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// importSQL is a procedure that commits each row by itself, so that one command of the client is many transactions.
const importSQL = `
CREATE PROCEDURE app.import(source text, keys text[], payloads text[]) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. array_length(keys, 1) LOOP
		EXECUTE format('INSERT INTO app.%I (key, payload) VALUES ($1, $2::json)', source) USING keys[i], payloads[i];
		COMMIT;
	END LOOP;
END
$$;`

// maxImport is how many transactions an import has, at most.
const maxImport = 60

// importWorkload is many short transactions without a pause between them: nobody who samples the sessions sees each of them.
func importWorkload() workload {
	return workload{
		sql: importSQL,
		writes: []write{
			{"many transactions in one message", 1, nil, inOneMessage},
			{"many transactions in a procedure", 1, nil, inAProcedure},
		},
	}
}

func inOneMessage(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	var message strings.Builder
	txs := p.each(table, func(r row) {
		fmt.Fprintf(&message, "BEGIN; INSERT INTO app.%s (key, payload) VALUES (%s, %s); COMMIT;\n", table, literal(r.key), literal(r.payload))
	})
	_, err := conn.PgConn().Exec(ctx, message.String()).ReadAll()
	p.outcomes(txs, err)
	if err != nil && !conn.IsClosed() {
		_, _ = conn.Exec(ctx, "ROLLBACK")
	}
}

func inAProcedure(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	var keys, payloads []string
	txs := p.each(table, func(r row) { keys, payloads = append(keys, r.key), append(payloads, r.payload) })
	_, err := conn.Exec(ctx, "CALL app.import($1, $2, $3)", table, keys, payloads)
	p.outcomes(txs, err)
}

// each makes some transactions of one row each, and returns their names.
func (p *producer) each(table string, use func(row)) (txs []string) {
	for range 10 + p.random.IntN(maxImport-10) {
		tx := p.begin()
		use(p.make(tx, table, 1)[0])
		p.note(tx, history.Try)
		txs = append(txs, tx)
	}
	return txs
}

// outcomes notes how transactions ended that were one command. Where it failed is not known, so of each it is not known
// whether it was committed: the table says.
func (p *producer) outcomes(txs []string, err error) {
	step := history.Committed
	if err != nil {
		step = history.Unknown
	}
	for _, tx := range txs {
		p.note(tx, step)
	}
}

// literal is a text as SQL spells it.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
