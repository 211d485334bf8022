package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// The target of some sql sinks: another database of the same server, so in no transaction with the cursor, and their role.
const (
	targetDatabase = "target"
	targetRole     = "ledger"
)

// targetWorkload is sql sinks that write to another database, which refuses records now and then.
func targetWorkload() workload {
	w := workload{
		processes: []process{
			{Process: history.Process{Name: "clock_target", Table: "clock", Sink: history.Remote, Checkpoint: 3, Letters: true}},
			{Process: history.Process{Name: "ids_target", Table: "ids", Sink: history.Remote, Checkpoint: 1, Letters: true}},
		},
		kinds:  map[history.Kind]kind{history.TargetRefuses: refuseInTarget},
		faults: map[string][]plan.Chance{},
	}
	for _, p := range w.processes {
		w.faults[p.Name] = []plan.Chance{{Weight: 12, Kind: history.TargetRefuses, Min: 3 * time.Second, Max: 3 * time.Second}}
	}
	return w
}

// refusingSQL makes a target refuse what comes from some processes. Nothing in the table is unique: the judge counts.
const refusingSQL = `
CREATE SCHEMA app;
CREATE TABLE app.refusing (process_name text PRIMARY KEY);
CREATE FUNCTION app.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	IF EXISTS (SELECT FROM app.refusing WHERE process_name = TG_ARGV[0]) THEN
		RAISE EXCEPTION 'refused by the plan' USING ERRCODE = '23514';
	END IF;
	RETURN NEW;
END
$$;`

// createTarget makes the target with its tables, and a role with the rights that the sink needs there.
func (d *database) createTarget(ctx context.Context) error {
	err := d.do(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{"CREATE DATABASE " + targetDatabase, "CREATE ROLE " + targetRole + " LOGIN PASSWORD '" + targetRole + "'"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(refusingSQL)
	for _, p := range targeted() {
		fmt.Fprintf(&b, appliedSQL, p.Name)
		fmt.Fprintf(&b, "CREATE TRIGGER refuse BEFORE INSERT ON app.applied_%[1]s FOR EACH ROW EXECUTE FUNCTION app.refuse('%[1]s');", p.Name)
	}
	sink, err := sql.NewRemote(sql.Config{URL: targetURL(d.addr()), Statements: []string{"SELECT 1"}})
	if err != nil {
		return err
	}
	b.WriteString(sink.Tables())
	fmt.Fprintf(&b, `
GRANT USAGE ON SCHEMA app TO %[1]s;
GRANT INSERT ON ALL TABLES IN SCHEMA app TO %[1]s;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.ordered_dispatcher_applied, public.ordered_dispatcher_refused TO %[1]s;`, targetRole)
	return d.inTarget(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, b.String(), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

// targeted are the processes that write there.
func targeted() []history.Process {
	var all []history.Process
	for _, p := range processes() {
		if p.Sink == history.Remote {
			all = append(all, p)
		}
	}
	return all
}

// targetURL is the target's for the sink.
func targetURL(addr string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(targetRole, targetRole), Host: addr, Path: targetDatabase, RawQuery: "sslmode=disable"}).String()
}

// inTarget is do in the target.
func (d *database) inTarget(ctx context.Context, errand func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(d.url())
	if err != nil {
		return err
	}
	config.Database, config.ConnectTimeout = targetDatabase, connectTimeout
	config.RuntimeParams["application_name"] = "torture"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return errand(conn)
}

// execInTarget runs a statement about a process there.
func (d *database) execInTarget(ctx context.Context, sql, process string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return d.inTarget(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, process)
		return err
	})
}

// refuseInTarget has the target refuse what comes until a record was put aside. Then operators replay all that was, or two
// at once, or one of them discards it.
func refuseInTarget(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	before, err := f.openLetter(ctx, fault.Process)
	if err != nil {
		return missed(err)
	}
	begin()
	err = f.database.execInTarget(ctx, "INSERT INTO app.refusing (process_name) VALUES ($1) ON CONFLICT DO NOTHING", fault.Process)
	aside := false
	if err == nil {
		aside = f.awaitLetter(ctx, fault, before)
	}
	if again := f.acceptInTarget(ctx, fault.Process); again != nil {
		return again
	}
	if !aside {
		return nil // a record may have been put aside all the same, late, or after an answer that was lost
	}
	pause(ctx, time.Duration(fault.Choice%500)*time.Millisecond)
	if fault.Choice>>16%2 == 0 {
		_ = f.letterCommand(ctx, "replay", "--process", fault.Process, "--all")
		return nil
	}
	f.lettersAtOnce(ctx, fault, "--process", fault.Process, "--all")
	return nil
}

// awaitLetter waits for a record to be put aside, for as long as the fault lasts.
func (f *field) awaitLetter(ctx context.Context, fault plan.Fault, before int64) bool {
	ctx, cancel := context.WithTimeout(ctx, fault.For)
	defer cancel()
	for pause(ctx, 20*time.Millisecond) {
		if id, err := f.openLetter(ctx, fault.Process); err == nil && id > before {
			return true
		}
	}
	return false
}

// acceptInTarget ends a refusal, however long the database is away, up to a minute.
func (f *field) acceptInTarget(ctx context.Context, process string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := f.database.execInTarget(ctx, "DELETE FROM app.refusing WHERE process_name = $1", process)
		if err == nil || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// appliedSelect reads a table of appliedSQL.
const appliedSelect = `/* torture.applied */
SELECT n, key, position, hash, sequence FROM app.applied_%s ORDER BY n LIMIT 10000000`

// readApplied reads what a sql sink wrote, wherever its table is.
func (d *database) readApplied(ctx context.Context, p history.Process) (all []history.Applied, err error) {
	do := d.do
	if p.Sink == history.Remote {
		do = d.inTarget
	}
	err = do(ctx, func(conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, fmt.Sprintf(appliedSelect, p.Name))
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (history.Applied, error) {
			a := history.Applied{Process: p.Name}
			err := row.Scan(&a.N, &a.Key, &a.Position, &a.Hash, &a.Sequence)
			return a, err
		})
		return err
	})
	return all, err
}
