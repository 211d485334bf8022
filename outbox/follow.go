package outbox

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Follow returns the DDL that makes an existing table one that the dispatcher can follow, as it follows an outbox: with
// a column of the time of the insert that the database stamps, no NULL in the order, and the indexes. The table's
// owner runs it statement by statement, in this order, each in a transaction of its own. Follow changes nothing itself.
// It returns no statement for a table that is ready.
//
// A finding is what these statements do not end, or a note on another way. config names the table, its columns and the
// order as for a source; the rest of it does not matter here. A column that is missing is added. Follow returns an
// error if config is wrong, or if the database did not answer.
func Follow(ctx context.Context, pool *pgxpool.Pool, config table.Config) (statements []string, findings []table.Finding, err error) {
	source, err := table.New(pool, config)
	if err != nil {
		return nil, nil, err
	}
	return source.DDL(ctx)
}
