package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// keptSQL is a trigger of a colleague's at the cursor table: it keeps from the rows of some processes all that is written, or
// only what moves the position, or leaves them as they are while the server counts them as changed, or keeps only what moves
// the sequence.
const keptSQL = `
CREATE TABLE app.kept (process_name text PRIMARY KEY, how int NOT NULL);
CREATE FUNCTION app.keep_cursor() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
	how int = (SELECT k.how FROM app.kept k WHERE k.process_name = NEW.process_name);
BEGIN
	IF how = 0 OR how = 1 AND NEW.position <> OLD.position OR how = 3 AND NEW.sequence <> OLD.sequence THEN
		RETURN NULL;
	ELSIF how = 2 THEN
		RETURN OLD;
	END IF;
	RETURN NEW;
END
$$;
CREATE TRIGGER keep BEFORE UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION app.keep_cursor();`

// keptWorkload is advances that no row takes for a while, though the worker has its lock.
func keptWorkload() workload {
	w := workload{
		sql:   keptSQL,
		kinds: map[history.Kind]kind{history.KeptAdvance: keepAdvance},
	}
	for _, process := range []string{"clock_plain", "now_seven", "ids_fenced", "parts_letters", "clock_sql", "clock_queue", "clock_stream", "clock_target", "ids_target"} {
		w.tracks = append(w.tracks, plan.Track{
			Victim: plan.Fault{Process: process, Victim: "kept"},
			Kinds:  []plan.Chance{{Weight: 1, Kind: history.KeptAdvance, Min: 500 * time.Millisecond, Max: 4 * time.Second}},
			Min:    3 * time.Second, Max: 12 * time.Second,
		})
	}
	return w
}

// keepAdvance has the trigger keep the row of a process as it is for as long as the fault lasts.
func keepAdvance(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	// Where its answer is lost, the row may be kept all the same.
	err := f.kept(ctx, fmt.Sprintf("INSERT INTO app.kept (process_name, how) VALUES ($1, %d) ON CONFLICT DO NOTHING", fault.Choice%4), fault.Process)
	if err == nil {
		pause(ctx, fault.For)
	}
	again := f.database.insist(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DELETE FROM app.kept WHERE process_name = $1", fault.Process)
		return err
	})
	return again
}

func (f *field) kept(ctx context.Context, sql, process string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return f.database.do(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, process)
		return err
	})
}
