package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// deadLettersSQL reads by the index on open dead letters, or by the primary key.
var deadLettersSQL = `/* cursor.dead_letters */
` + tables.LettersSQL + `WHERE ($1::text = '' OR process_name = $1) AND ($2::boolean OR resolution IS NULL)
ORDER BY id
LIMIT $3::int`

// DeadLetters lists at most limit dead letters, in the order in which they were put aside: those of one process
// or, with "", of every process. With all, it also lists those that are resolved. They come without headers and
// payload: see DeadLetter.
func (o *Operator) DeadLetters(ctx context.Context, process string, all bool, limit int) ([]cursor.DeadLetter, error) {
	return o.listLetters(ctx, deadLettersSQL, process, all, limit)
}

// openLettersSQL reads the open dead letters of a process by their index, and sorts them as records are sorted.
var openLettersSQL = `/* cursor.open_dead_letters */
` + tables.LettersSQL + `WHERE process_name = $1::text AND resolution IS NULL AND ($2::text = '' OR strpos(error, $2) > 0)
ORDER BY position, id
LIMIT $3::int`

// OpenDeadLetters lists the open dead letters of a process in the order of their positions, at most limit of
// them. With containing, it lists only those whose error contains that text. They come without headers and
// payload: see DeadLetter.
func (o *Operator) OpenDeadLetters(ctx context.Context, process, containing string, limit int) ([]cursor.DeadLetter, error) {
	return o.listLetters(ctx, openLettersSQL, process, containing, limit)
}

func (o *Operator) listLetters(ctx context.Context, sql string, args ...any) ([]cursor.DeadLetter, error) {
	letters, err := o.letters(ctx, sql, args...)
	if err != nil {
		return nil, o.db.WithFix("list dead letters", err)
	}
	return letters, nil
}

// letters reads dead letters with a statement.
func (o *Operator) letters(ctx context.Context, sql string, args ...any) (all []cursor.DeadLetter, err error) {
	err = o.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, o.db.SQL(sql), append([]any{tables.Binary}, args...)...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, cursor.RowToDeadLetter)
		return err
	})
	return all, err
}

// reading runs f in a transaction that only reads dead letters.
func (o *Operator) reading(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return o.store.NameExcluder(ctx, o.db.Reading(ctx, f), "dead_letter")
}

// DeadLetter returns one dead letter, open or resolved, with headers and payload. It sets Withheld instead if
// the role may not read those. It returns cursor.ErrNoDeadLetter if there is none.
func (o *Operator) DeadLetter(ctx context.Context, id int64) (cursor.DeadLetter, error) {
	found, err := o.letters(ctx, tables.LetterSQL, id)
	var pgErr *pgconn.PgError
	withheld := errors.As(err, &pgErr) && pgErr.Code == "42501"
	if withheld {
		found, err = o.letters(ctx, tables.PlainLetterSQL, id)
	}
	if err == nil && len(found) == 0 {
		err = cursor.ErrNoDeadLetter
	}
	if err != nil {
		return cursor.DeadLetter{Withheld: withheld}, o.db.WithFix(fmt.Sprintf("read dead letter %d", id), err)
	}
	found[0].Withheld = withheld
	return found[0], nil
}

// countLettersSQL reads by the index on open dead letters, at most $2 entries a process. It names only columns
// that DutyCount grants.
const countLettersSQL = `/* cursor.count_dead_letters */
SELECT
	process.name,
	(
		SELECT count(*)
		FROM (
			SELECT
			FROM {schema}.dead_letter letter
			WHERE letter.process_name = process.name AND letter.resolution IS NULL
			LIMIT $2::int
		) open
	)
FROM unnest($1::text[]) process (name)`

// MaxCountedLetters bounds how many dead letters of one process CountDeadLetters counts.
const MaxCountedLetters = 100_000

// CountDeadLetters counts the open dead letters of each of the processes, up to MaxCountedLetters. It needs
// only DutyCount.
func (o *Operator) CountDeadLetters(ctx context.Context, processes []string) (map[string]int64, error) {
	counts := map[string]int64{}
	err := o.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, o.db.SQL(countLettersSQL), pgx.QueryExecModeExec, processes, MaxCountedLetters)
		if err != nil {
			return err
		}
		var process string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&process, &n}, func() error {
			counts[process] = n
			return nil
		})
		return err
	})
	if err != nil {
		return nil, o.db.WithFix("count the open dead letters", err)
	}
	return counts, nil
}

// Discard marks an open dead letter as never to be delivered, and returns it as it was. It returns
// cursor.ErrNoDeadLetter if there is none of that number, and cursor.ErrMoved if d.Expect is not its position.
// It returns cursor.ErrLocked if the dead letter is being replayed, and the replay does not end within
// d.Timeout. d needs a reason.
func (o *Operator) Discard(ctx context.Context, id int64, d cursor.Decision) (cursor.DeadLetter, error) {
	letter, err := o.store.Resolvable(ctx, id, d, cursor.Discarded)
	if err != nil || d.DryRun {
		return letter, err
	}
	d, err = d.Reasoned()
	if err == nil {
		err = o.discard(ctx, letter, d)
	}
	if err != nil {
		return letter, o.db.WithFix(fmt.Sprintf("discard dead letter %d", id), tables.Unaudited(err))
	}
	return letter, nil
}

func (o *Operator) discard(ctx context.Context, letter cursor.DeadLetter, d cursor.Decision) error {
	err := o.db.OnConnection(ctx, func(conn *pgxpool.Conn) error {
		_, err := tables.FlushWithin(ctx, d.Timeout+tables.Margin, conn.Conn(), tables.Begin, tables.Pin,
			tables.Wait(cursor.ApplicationOperator+letter.Process, d.Timeout, o.config.Timeout),
			o.db.Resolve(letter.ID, string(cursor.Discarded), d.Actor, d.Reason), tables.Commit)
		return tables.Uncertain(err)
	})
	switch {
	case tables.GaveUp(err):
		return o.store.LetterLocked(ctx, fmt.Errorf("within %v", d.Timeout))
	case tables.NotAsLocked(err) && !tables.NotTaken(err):
		return fmt.Errorf("%w: another operator resolved it in between", cursor.ErrNoDeadLetter)
	}
	return err
}
