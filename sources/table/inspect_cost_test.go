package table

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestInspect_CostIsThatOfItsOwnTableWhateverElseIsThere: a catalog has many views and
// tables that are none of ours. Blocks are counted, with the session's caches warm.
func TestInspect_CostIsThatOfItsOwnTableWhateverElseIsThere(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`CREATE VIEW app.v AS SELECT * FROM app.bookings`)
	oid := pgtest.Value[uint32](t, pool, `SELECT 'app.bookings'::regclass::oid`)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	cost := func(sql string) (blocks int) {
		for range 3 {
			require.NoError(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), settingsSQL); err != nil {
					return err
				}
				var text []byte
				explain := "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + fmt.Sprintf(sql, oid)
				if err := tx.QueryRow(t.Context(), explain, pgx.QueryExecModeExec, "created_at").Scan(&text); err != nil {
					return err
				}
				var plans []struct {
					Plan struct {
						Hit  int `json:"Shared Hit Blocks"`
						Read int `json:"Shared Read Blocks"`
					}
				}
				err := json.Unmarshal(text, &plans)
				blocks = plans[0].Plan.Hit + plans[0].Plan.Read
				return err
			}))
		}
		return blocks
	}
	statements := []string{membersSQL, sequencesSQL, viewsSQL}
	var alone []int
	for _, sql := range statements {
		alone = append(alone, cost(sql))
	}
	exec(t, pool, `
		CREATE SCHEMA others;
		DO $$ BEGIN FOR i IN 1..100 LOOP
			EXECUTE format('CREATE TABLE others.t%s (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz DEFAULT now())', i);
			EXECUTE format('CREATE VIEW others.v%s AS SELECT * FROM others.t%s', i, i);
		END LOOP; END $$;
		ANALYZE`)
	for i, sql := range statements {
		require.InDelta(t, alone[i], cost(sql), 100, "blocks of %s", sql[:40])
	}
}
