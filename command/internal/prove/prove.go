package prove

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// The bounds of a measurement.
const (
	lookBack  = 2_000   // rows that ours has passed and that a look shows again
	maxLook   = 100_000 // rows of one look
	maxRows   = 500_000 // rows that are remembered
	sweepPage = 10_000

	// share is how many times longer than a look the pause after it is, at least. So the measurement keeps a connection
	// at work for a fifth of the time at most.
	share = 4
	// sweepTime bounds the last pass over the rows, also after an interrupt.
	sweepTime = 20 * time.Second
)

// Config describes a measurement.
type Config struct {
	Table table.Config
	// For is how long it lasts, Every how often the readers look.
	For, Every time.Duration
	// Began, if set, is called after the first look.
	Began  func(Report)
	Logger *slog.Logger
}

// Report is the result of a measurement.
type Report struct {
	Table string `json:"table"`
	Order string `json:"order"`
	// Began and Lasted are when the looks began, by the server's clock, and for how long they went on.
	Began  time.Time     `json:"began"`
	Lasted time.Duration `json:"lasted_ns"`
	Every  time.Duration `json:"every_ns"`
	// Early is why the measurement ended before its time; "" if it did not.
	Early string `json:"ended_early,omitempty"`
	// Rows became visible in that time. Delivered are those of them that ours has delivered, and Waiting are all that
	// wait for the fence at the end.
	Rows      int `json:"rows"`
	Delivered int `json:"delivered"`
	Waiting   int `json:"waiting"`

	ByID   Reader `json:"id_reader"`
	ByTime Reader `json:"time_reader"`
	Ours   Reader `json:"ours"`

	Overlap Overlap `json:"overlap"`
	// Stood is for how long a transaction held the fence, as the looks saw it. Longest is how far the fence was back at most.
	Stood   time.Duration `json:"fence_stood_ns"`
	Longest time.Duration `json:"fence_longest_ns"`
	Holders []Holder      `json:"holders"`
	// Waited is from the look that showed a row first to the one that delivered it; Age is from the row's time.
	Waited Latency `json:"waited"`
	Age    Latency `json:"age"`
	// Findings weaken what ours promises for this table.
	Findings []string `json:"findings,omitempty"`
}

// prover looks at a table again and again.
type prover struct {
	source *table.Source
	log    *slog.Logger
	judge  *judge
	fence  fenceLog
	from   cursor.Position   // the rows after it were looked at from the beginning
	recent []cursor.Position // the last rows that ours delivered
	report Report
	last   time.Time
}

// Run measures until the time is over or the context ends. In both cases it returns what it has seen.
func Run(ctx context.Context, pool *pgxpool.Pool, c Config) (Report, error) {
	p, err := newProver(ctx, pool, c)
	if err != nil {
		return Report{}, err
	}
	if err := p.measure(ctx, c); err != nil {
		return Report{}, err
	}
	return p.finish(ctx)
}

func newProver(ctx context.Context, pool *pgxpool.Pool, c Config) (*prover, error) {
	opened, err := open(ctx, pool, c.Table)
	if err != nil {
		return nil, err
	}
	p := &prover{source: opened.source, log: c.Logger}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.report = Report{Table: opened.name, Order: opened.order, Every: c.Every, Findings: opened.findings}
	if p.from, err = p.source.Tail(ctx, lookBack); err != nil {
		return nil, err
	}
	p.judge = newJudge(p.from)
	return p, nil
}

// errTooFast ends a measurement: it would need more memory, or load the server.
var errTooFast = errors.New("the table is too fast for this measurement")

func (p *prover) measure(ctx context.Context, c Config) error {
	end := time.NewTimer(c.For)
	defer end.Stop()
	for looks := 1; ; looks++ {
		began := time.Now()
		err := p.look(ctx)
		switch {
		case errors.Is(err, errTooFast):
			p.report.Early = err.Error()
			return nil
		case err != nil && ctx.Err() != nil && p.judge.began:
			p.report.Early = "it was interrupted"
			return nil
		case err != nil:
			return err
		}
		p.log.Debug("looked at the table", "looks", looks, "rows", p.judge.rows)
		if looks == 1 && c.Began != nil {
			c.Began(p.report)
		}
		select {
		case <-time.After(max(c.Every, share*time.Since(began))):
		case <-end.C:
			return nil
		case <-ctx.Done():
			p.report.Early = "it was interrupted"
			return nil
		}
	}
}

// look asks for the fence, and takes the snapshot after that.
func (p *prover) look(ctx context.Context) error {
	bound, err := p.source.Fence(ctx)
	if err != nil {
		return err
	}
	after := p.from
	if len(p.recent) == lookBack {
		after = p.recent[0]
	}
	look, err := p.source.Look(ctx, after, maxLook)
	if err != nil {
		return err
	}
	if bound.Holder != "" {
		writers, err := p.source.Writers(ctx)
		if err != nil {
			return err
		}
		p.fence.name(bound.Holder, writers, look.Clock)
	}
	if len(look.Records) == maxLook || len(p.judge.known) >= maxRows {
		return fmt.Errorf("%w: it keeps at most %d rows, and at most %d that wait for the fence. Give it less time with --for",
			errTooFast, maxRows, maxLook)
	}
	p.fence.note(bound, look.Clock)
	p.recent = append(p.recent, p.judge.take(bound, look)...)
	p.recent = p.recent[max(0, len(p.recent)-lookBack):]
	if p.report.Began.IsZero() {
		p.report.Began = look.Clock
	}
	p.last = look.Clock
	return nil
}

// finish passes once more over the rows that ours has delivered, and writes the report.
func (p *prover) finish(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTime)
	defer cancel()
	for at := p.from; at < p.judge.place.ours; {
		look, err := p.source.Look(ctx, at, sweepPage)
		if err != nil {
			return Report{}, fmt.Errorf("look once more at the rows that were delivered: %w", err)
		}
		p.judge.sweep(look.Records)
		if len(look.Records) < sweepPage {
			break
		}
		at = look.Records[len(look.Records)-1].Position
	}
	r, j := p.report, p.judge
	r.Lasted = p.last.Sub(r.Began)
	r.Rows, r.Delivered, r.Waiting = j.rows, j.delivered, j.pending
	r.ByID, r.ByTime, r.Ours = j.byID, j.byTime, j.ours
	r.Overlap, r.Stood, r.Longest, r.Holders = p.fence.overlap, p.fence.stood, p.fence.longest, p.fence.worst()
	r.Waited, r.Age = j.waited.latency(), j.aged.latency()
	return r, nil
}
