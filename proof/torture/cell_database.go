package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// cellSettings are for few sessions; fsync stays on.
var cellSettings = map[string]string{"max_connections": "150", "shared_buffers": "32MB"}

// cellSQL is two tables: one in the order of its stamps, and one that has ids alone, so that a row is known by its id. The
// audit notes who begins an epoch, under an id that no two servers make.
const cellSQL = `
CREATE SCHEMA app;
CREATE TABLE app.stamped (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	key        text NOT NULL,
	payload    json NOT NULL
);
CREATE INDEX ON app.stamped (created_at, id);
CREATE TABLE app.bare (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key        text NOT NULL,
	payload    json NOT NULL
);
CREATE TABLE app.reign (
	id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	process_name text NOT NULL,
	epoch        bigint NOT NULL
);
CREATE FUNCTION app.note_reign() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	INSERT INTO app.reign (process_name, epoch) VALUES (NEW.process_name, NEW.epoch);
	RETURN NULL;
END
$$;
CREATE TRIGGER reign AFTER UPDATE ON dispatch.cursor FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch) EXECUTE FUNCTION app.note_reign();
CREATE TRIGGER reign_first AFTER INSERT ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION app.note_reign();`

func cellSources() []source {
	return []source{{name: "stamped", order: "created_at"}, {name: "bare", order: "id"}}
}

func openCellDatabase(ctx context.Context) (*database, error) {
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: cellSettings})
	if err != nil {
		return nil, err
	}
	d := &database{server: server}
	_, err = migrations.Up(ctx, migrations.Config{ConnString: d.url(), Schema: schema})
	if err == nil {
		err = d.do(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, cellSQL, pgx.QueryExecModeSimpleProtocol)
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// stand is how the processes stand, and the position of the last row of each table.
func (c *cell) stand(ctx context.Context) (at map[string]history.Standing, last map[string]string, err error) {
	err = c.database.insist(ctx, func(conn *pgx.Conn) (err error) {
		if last, err = lastPositions(ctx, conn, cellSources()); err != nil {
			return err
		}
		at, err = standings(ctx, conn)
		return err
	})
	return at, last, err
}

// warmUp waits until every process has delivered some, so that the next fault meets them at work; not for ever, since one may
// still stand still after the fault before.
func (c *cell) warmUp(ctx context.Context) error {
	const records = 5
	began := c.clock.Now()
	before, _, err := c.stand(ctx)
	if err != nil {
		return err
	}
	for waiting := true; waiting && c.metronome.since(began) < 10*time.Second && pause(ctx, 50*time.Millisecond); {
		now, _, err := c.stand(ctx)
		if err != nil {
			return err
		}
		waiting = false
		for _, p := range cellProcesses(c.receivers) {
			waiting = waiting || now[p.name].Sequence < before[p.name].Sequence+records
		}
	}
	return context.Cause(ctx)
}

// recover waits until every process has delivered what there is now, or the patience of the change is over.
func (c *cell) recover(ctx context.Context, change *history.Change) error {
	began := c.clock.Now()
	_, last, err := c.stand(ctx)
	if err != nil {
		return err
	}
	for pause(ctx, 50*time.Millisecond) {
		now, _, err := c.stand(ctx)
		if err != nil {
			return err
		}
		var stuck []string
		for _, p := range cellProcesses(c.receivers) {
			if at := now[p.name]; at.Position < last[p.table] || at.State != "running" || at.Timeline <= 0 || at.Timeline == cursor.RestoredTimeline { // it may halt again once it has looked
				stuck = append(stuck, fmt.Sprintf("%s %s at %q, before %q", p.name, at.State, at.Position, last[p.table]))
			}
		}
		took := c.metronome.since(began)
		if stuck == nil || took > change.Patience {
			change.Recovered, change.Stuck = max(change.Recovered, took), append(change.Stuck, stuck...)
			return nil
		}
	}
	return context.Cause(ctx)
}
