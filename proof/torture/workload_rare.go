package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

const rareSQL = `
CREATE TABLE app.rare (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	key        text NOT NULL,
	payload    json NOT NULL,
	wanted     boolean NOT NULL DEFAULT false
);
CREATE INDEX ON app.rare (created_at, id);`

// rareWorkload is a condition that few rows of a large table meet. The others are many, and no process may see one.
func rareWorkload() workload {
	return workload{
		sources: []source{{name: "rare", order: "created_at", where: "wanted", with: []column{{"wanted", "true"}}, private: true, sql: rareSQL}},
		processes: []process{
			{Process: history.Process{Name: "rare_plain", Table: "rare", Sink: history.Webhook, Checkpoint: 1, Sparse: true}, source: `, where: "wanted"`},
			{Process: history.Process{Name: "rare_sql", Table: "rare", Sink: history.SQL, Checkpoint: 3, Sparse: true}, source: `, where: "wanted"`},
		},
		writes: []write{
			{"few rows that meet a condition", 2, []string{"rare"}, severalStatements},
			{"among thousands that do not", 1, []string{"rare"}, unwanted},
		},
	}
}

// maxUnwanted is more than a worker reads before its cursor passes over what it does not want.
const maxUnwanted = 12_000

// unwanted inserts rows that no process wants. Nobody notes them: whoever delivers one delivers what is not in the table.
func unwanted(ctx context.Context, p *producer, conn *pgx.Conn, _ string) {
	n := 1 + p.random.IntN(maxUnwanted)
	_, _ = conn.Exec(ctx, fmt.Sprintf(`INSERT INTO app.rare (key, payload) SELECT 'unwanted-' || n, '{}' FROM generate_series(1, %d) n`, n))
	p.inTx(ctx, conn, "rare", end{"COMMIT", history.Committed}, p.insertSome)
}
