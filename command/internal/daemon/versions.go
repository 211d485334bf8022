package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
)

// Versions are two processes that build one read model from one source.
type Versions struct{ Old, New string }

// table returns the table that both versions read. Positions of different sources cannot be compared.
func (v Versions) table(c Config) (string, error) {
	var of [2]Process
	names := c.Names()
	for i, name := range []string{v.Old, v.New} {
		at := slices.Index(names, name)
		if at < 0 {
			return "", unknownProcess(name, names)
		}
		of[i] = c.Processes[at].filled()
	}
	old, recent := of[0].Source, of[1].Source
	if old.Table != recent.Table || old.Order != recent.Order {
		return "", usage("%q reads %s by %s, and %q reads %s by %s: two versions of a read model have the same source", v.Old, old.Table, old.Order, v.New, recent.Table, recent.Order)
	}
	return old.Table, nil
}

// holdWriters bounds how long Compare keeps writers waiting.
const holdWriters = time.Second

// Compare calls readmodel.Compare.
func Compare(ctx context.Context, c Config, v Versions, query string, hold bool, wait time.Duration) (readmodel.Difference, error) {
	table, err := v.table(c)
	if err != nil {
		return readmodel.Difference{}, err
	}
	if !hold {
		table = ""
	}
	pool, store, err := c.open(ctx)
	if err != nil {
		return readmodel.Difference{}, err
	}
	defer pool.Close()
	d, err := readmodel.Compare(ctx, store, readmodel.Comparison{Old: v.Old, New: v.New, SQL: query, Wait: wait, Hold: table, HoldFor: holdWriters})
	return d, v.explain(ctx, store, err)
}

// explain names the version that has no cursor, and the next step.
func (v Versions) explain(ctx context.Context, store *cursor.Store, err error) error {
	if !errors.Is(err, cursor.ErrUnknown) {
		return Reachable(err)
	}
	for _, name := range []string{v.New, v.Old} {
		switch past := store.Past(ctx, name); {
		case past == nil:
			return fmt.Errorf("%s has not run yet: start `ordered-dispatcher run`, and wait until it has caught up", visible.Short(name))
		case !errors.Is(past, cursor.ErrExists):
			return Reachable(past)
		}
	}
	return err // they were made a moment ago
}

// PrintDifference prints the rows that differ. It returns ErrDiffers if there are any.
func PrintDifference(w io.Writer, d readmodel.Difference) error {
	var b strings.Builder
	if len(d.Rows) == 0 {
		fmt.Fprintf(&b, "no row differs, at %s\n", place(d.Position))
		_, err := io.WriteString(w, visible.Text(b.String()))
		return err
	}
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{d.Columns}, d.Rows...) {
		var cells []string
		for _, cell := range row {
			cells = append(cells, visible.Short(cell))
		}
		fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	_ = columns.Flush() // a strings.Builder takes everything
	if d.More {
		fmt.Fprintln(&b, "… and more")
	}
	fmt.Fprintf(&b, "the versions differ, at %s\n", place(d.Position))
	if _, err := io.WriteString(w, visible.Text(b.String())); err != nil {
		return err
	}
	return ErrDiffers
}

// Switch calls operator.Operator.Switch: the change is a list of statements.
func Switch(ctx context.Context, c Config, v Versions, statements []string, d cursor.Decision) (operator.Switched, error) {
	if _, err := v.table(c); err != nil {
		return operator.Switched{}, err
	}
	if err := v.noShadows(); err != nil {
		return operator.Switched{}, err
	}
	o, err := NewOperator(ctx, c, v.Old)
	if err != nil {
		return operator.Switched{}, err
	}
	defer o.Close()
	switched, err := o.op.Switch(ctx, v.Old, v.New, d, func(ctx context.Context, tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", visible.Short(statement), ofStatement(err))
			}
		}
		return nil
	})
	if errors.Is(err, cursor.ErrUnknown) {
		return switched, v.explain(ctx, o.store, err)
	}
	return switched, o.explain(ctx, err)
}

// ofStatement words what the server says about a statement of the operator. The next steps that errors of the cursor's
// own statements get are not for it, so it is no *pgconn.PgError any more.
func ofStatement(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case !errors.As(err, &pgErr):
		return err
	case pgErr.Code == "42501" && strings.Contains(pgErr.Message, "pg_catalog"): // where a name without a schema leads
		return fmt.Errorf("%v; write the schema before each name, as in public.balance", pgErr)
	default:
		return errors.New(pgErr.Error())
	}
}

// PrintSwitched prints what a switch did, or would do.
func PrintSwitched(w io.Writer, s operator.Switched, dryRun bool) error {
	next := "Both go on"
	if s.From.State != cursor.Running {
		next = fmt.Sprintf("%s goes on. %s stays %s", s.To.Process, s.From.Process, s.From.State)
	}
	text := fmt.Sprintf("readers use %s now, which is at %s. %s was at %s, and could not advance for %v. %s",
		s.To.Process, place(s.To.Position), s.From.Process, place(s.From.Position), s.Held.Round(time.Millisecond), next)
	if dryRun {
		text = fmt.Sprintf("dry run, nothing is changed. %s is at %s, and has applied what %s has, which was at %s",
			s.To.Process, place(s.To.Position), s.From.Process, place(s.From.Position))
	}
	_, err := fmt.Fprintln(w, visible.Inline(text))
	return err
}
