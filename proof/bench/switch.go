package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
)

const (
	creditsTable = "credits"
	creditRate   = 200 // rows a second
	creditStep   = 5   // rows of one INSERT
	accounts     = 100

	switches        = 100
	betweenSwitches = 250 * time.Millisecond
	betweenReads    = 2 * time.Millisecond
)

// versionsSQL makes the tables of two versions of a read model, and the view that its readers use.
const versionsSQL = `/* bench.versions */
CREATE TABLE bench.balance_v1 (account bigint PRIMARY KEY, cents bigint NOT NULL);
CREATE TABLE bench.balance_v2 (account bigint PRIMARY KEY, cents bigint NOT NULL);
CREATE VIEW bench.balance AS SELECT account, cents FROM bench.balance_v1`

// measureSwitch takes for how long a switch between two versions of a read model holds the old version, and for how long
// it holds up readers, while records come in steadily and both versions apply them.
func measureSwitch(ctx context.Context, b *bench) ([]row, error) {
	if err := b.create(ctx, creditsTable); err != nil {
		return nil, err
	}
	if _, err := b.pool.Exec(ctx, versionsSQL); err != nil {
		return nil, err
	}
	var s switched
	var reads []float64
	err := b.whileApplied(ctx, func(ctx context.Context) error {
		var all errgroup.Group
		reading, stop := context.WithCancel(ctx)
		all.Go(func() (err error) { reads, err = b.readSteadily(reading); return err })
		var err error
		s, err = b.switchOften(ctx)
		stop()
		return errors.Join(err, all.Wait())
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("`process switch` holds the old version, both busy at %d inserts/s, p%%d", creditRate)
	return []row{
		{name: "switch", what: fmt.Sprintf(what, 50), value: spread{median: percentile(s.held, 50)}, unit: " ms", target: target{100, below},
			figures: fmt.Sprintf("%s over %d switches, %d more were refused; the whole calls: %s", distribution(s.held), len(s.held), s.behind, distribution(s.whole))},
		{name: "switch", what: fmt.Sprintf(what, 99), value: spread{median: percentile(s.held, 99)}, unit: " ms", target: target{100, below}, figures: "as above"},
		{name: "switch", what: "read of the view meanwhile, longest", value: spread{median: slices.Max(reads)}, unit: " ms", target: target{100, below},
			figures: fmt.Sprintf("%s over %s reads", distribution(reads), figure(float64(len(reads))))},
	}, nil
}

// whileApplied calls f while records come in and both versions apply them. In the end each must have applied all.
func (b *bench) whileApplied(ctx context.Context, f func(context.Context) error) error {
	pool, err := connect(ctx, b.address, 8)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	versions, applying := errgroup.WithContext(running)
	for _, v := range []string{"v1", "v2"} {
		p, err := version(store, v)
		if err != nil {
			return err
		}
		versions.Go(func() error { return p.Run(applying) })
	}
	loading, enough := context.WithCancel(applying)
	loaded := make(chan error, 1)
	go func() { loaded <- b.load(loading, creditsTable, creditRate, creditStep) }()
	time.Sleep(warmUpTime)
	err = f(applying)
	enough()
	err = errors.Join(err, <-loaded)
	if err == nil {
		err = b.appliedAll(applying)
	}
	stop()
	return errors.Join(err, versions.Wait(), context.Cause(ctx))
}

// version is a process that applies each record to the tables of one version.
func version(store *cursor.Store, name string) (*processor.Process, error) {
	records, err := source(store.Pool(), creditsTable)
	if err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("/* bench.apply */ INSERT INTO bench.balance_%s AS b VALUES ($1, 1) ON CONFLICT (account) DO UPDATE SET cents = b.cents + 1", name)
	model, err := readmodel.New(readmodel.Otherwise(func(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
		_, err := tx.Exec(ctx, sql, d.Sequence%accounts)
		return err
	}))
	if err != nil {
		return nil, err
	}
	return processor.New(processor.Config{Process: "balance@" + name, Store: store, Source: records, Start: processor.Beginning, Dispatch: processor.InTx(model)})
}

// switched has the sorted times of switches, in milliseconds.
type switched struct {
	held, whole []float64 // the old version, and the whole call
	behind      int       // that were refused, since the new version was too far behind
}

// switchOften switches to and fro.
func (b *bench) switchOften(ctx context.Context) (all switched, err error) {
	decides := operator.New(b.store)
	from, to := "v1", "v2"
	for range b.scaled(switches, 4) {
		began := time.Now()
		s, err := decides.Switch(ctx, "balance@"+from, "balance@"+to, cursor.Decision{Actor: "bench", Reason: "to measure it"}, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE VIEW bench.balance AS SELECT account, cents FROM bench.balance_%s", to))
			return err
		})
		switch {
		case errors.Is(err, operator.ErrBehind):
			all.behind++
		case err != nil:
			return all, err
		default:
			all.held, all.whole = append(all.held, milliseconds(s.Held)), append(all.whole, milliseconds(time.Since(began)))
			from, to = to, from
		}
		time.Sleep(betweenSwitches)
	}
	if len(all.held) == 0 {
		return all, fmt.Errorf("%d switches were refused, and none was made", all.behind)
	}
	slices.Sort(all.held)
	slices.Sort(all.whole)
	return all, nil
}

// readSteadily reads the view until the context ends, and returns how long each read took, sorted, in milliseconds.
func (b *bench) readSteadily(ctx context.Context) (took []float64, err error) {
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := b.pool.Exec(ctx, "/* bench.balance */ SELECT sum(cents) FROM bench.balance"); err != nil {
			if ctx.Err() != nil {
				break
			}
			return nil, err
		}
		took = append(took, milliseconds(time.Since(began)))
		time.Sleep(betweenReads)
	}
	slices.Sort(took)
	return took, nil
}

const appliedSQL = `/* bench.applied */
SELECT
	(SELECT count(*) FROM bench.credits),
	(SELECT coalesce(sum(cents), 0)::bigint FROM bench.balance_v1),
	(SELECT coalesce(sum(cents), 0)::bigint FROM bench.balance_v2)`

// appliedAll waits until both versions have applied each record.
func (b *bench) appliedAll(ctx context.Context) error {
	late := time.Now().Add(lastDelivery)
	for {
		var records, one, two int64
		if err := b.pool.QueryRow(ctx, appliedSQL).Scan(&records, &one, &two); err != nil {
			return err
		}
		if records > 0 && records == one && records == two {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("of %d records, one version has applied %d and the other one %d", records, one, two)
		}
		time.Sleep(betweenSwitches)
	}
}
