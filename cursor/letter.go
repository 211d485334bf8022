package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

const deadLetterColumns = `
	id,
	process_name,
	at,
	position,
	sequence,
	table_name,
	record_id,
	key,
	type,
	record_created_at,
	attempts,
	first_failed_at,
	error,
	class,
	coalesce(resolution, ''),
	resolved_at,
	coalesce(resolved_by, ''),
	coalesce(reason, '')`

// deadLettersSQL reads by the index on open dead letters, or by the primary key.
const deadLettersSQL = `/* cursor.dead_letters */
SELECT` + deadLetterColumns + `
FROM {schema}.dead_letter
WHERE ($1::text = '' OR process_name = $1) AND ($2::boolean OR resolution IS NULL)
ORDER BY id
LIMIT $3::int`

// DeadLetters lists at most limit dead letters, in the order in which they were put aside: those of one process
// or, with "", of every process. With all, it also lists those that are resolved. They come without headers and
// payload: see DeadLetter.
func (s *Store) DeadLetters(ctx context.Context, process string, all bool, limit int) ([]DeadLetter, error) {
	return s.listLetters(ctx, s.sql(deadLettersSQL), process, all, limit)
}

func (s *Store) listLetters(ctx context.Context, sql string, args ...any) ([]DeadLetter, error) {
	var letters []DeadLetter
	err := s.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, append([]any{binary}, args...)...)
		if err != nil {
			return err
		}
		letters, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DeadLetter, err error) {
			return d, row.Scan(d.columns()...)
		})
		return err
	})
	if err != nil {
		return nil, s.withFix("list dead letters", err)
	}
	return letters, nil
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
func (s *Store) CountDeadLetters(ctx context.Context, processes []string) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.sql(countLettersSQL), pgx.QueryExecModeExec, processes, MaxCountedLetters)
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
		return nil, s.withFix("count the open dead letters", err)
	}
	return counts, nil
}

// openLettersSQL reads the open dead letters of a process by their index, and sorts them as records are sorted.
const openLettersSQL = `/* cursor.open_dead_letters */
SELECT` + deadLetterColumns + `
FROM {schema}.dead_letter
WHERE process_name = $1::text AND resolution IS NULL AND ($2::text = '' OR strpos(error, $2) > 0)
ORDER BY position, id
LIMIT $3::int`

// OpenDeadLetters lists the open dead letters of a process in the order of their positions, at most limit of
// them. With containing, it lists only those whose error contains that text. They come without headers and
// payload: see DeadLetter.
func (s *Store) OpenDeadLetters(ctx context.Context, process, containing string, limit int) ([]DeadLetter, error) {
	return s.listLetters(ctx, s.sql(openLettersSQL), process, containing, limit)
}

// reading runs f in a transaction that has our search_path and only reads dead letters.
func (s *Store) reading(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return s.nameExcluder(ctx, s.onConnection(ctx, func(conn *pgxpool.Conn) error {
		return answer.Within(ctx, commitTimeout, func(ctx context.Context) error {
			if _, err := flush(ctx, conn.Conn(), beginRead, pin); err != nil {
				return err
			}
			return f(ctx, conn.Conn())
		})
	}), "dead_letter")
}

// columns returns the destinations of deadLetterColumns.
func (d *DeadLetter) columns() []any {
	return []any{
		&d.ID, &d.Process, nullTime{&d.At}, &d.Position, &d.Sequence, &d.Table, &d.RecordID, &d.Key, &d.Type, nullTime{&d.CreatedAt},
		&d.Failure.Attempts, nullTime{&d.Failure.First}, &d.Failure.Error, &d.Failure.Class,
		&d.Resolution, nullTime{&d.ResolvedAt}, &d.ResolvedBy, &d.Reason,
	}
}

const oneDeadLetterSQL = `/* cursor.one_dead_letter */
SELECT` + deadLetterColumns + `,
	headers,
	payload
FROM {schema}.dead_letter
WHERE id = $1::bigint`

// plainLetterSQL is oneDeadLetterSQL without the contents of records.
const plainLetterSQL = `/* cursor.plain_letter */
SELECT` + deadLetterColumns + `
FROM {schema}.dead_letter
WHERE id = $1::bigint`

// DeadLetter returns one dead letter, open or resolved, with headers and payload. It sets Withheld instead if
// the role may not read those. It returns ErrNoDeadLetter if there is none.
func (s *Store) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	d, err := s.oneLetter(ctx, id, letter, oneDeadLetterSQL)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		d, err = s.plainLetter(ctx, id)
		d.Withheld = true
	}
	return d, err
}

// plainLetter is DeadLetter without headers and payload.
func (s *Store) plainLetter(ctx context.Context, id int64) (DeadLetter, error) {
	return s.oneLetter(ctx, id, plain, plainLetterSQL)
}

func (s *Store) oneLetter(ctx context.Context, id int64, scan func(context.Context, *pgx.Conn, string, int64) (DeadLetter, error), sql string) (d DeadLetter, err error) {
	err = s.reading(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		d, err = scan(ctx, conn, s.sql(sql), id)
		return err
	})
	if err != nil {
		return DeadLetter{}, s.withFix(fmt.Sprintf("read dead letter %d", id), err)
	}
	return d, nil
}

// letter reads one dead letter with a statement.
func letter(ctx context.Context, conn *pgx.Conn, sql string, id int64) (DeadLetter, error) {
	var d DeadLetter
	var headers []byte
	err := conn.QueryRow(ctx, sql, binary, id).Scan(append(d.columns(), &headers, &d.Payload)...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoDeadLetter
	}
	if err == nil {
		err = json.Unmarshal(headers, &d.Headers)
	}
	return d, err
}

// plain is letter for a statement without headers and payload.
func plain(ctx context.Context, conn *pgx.Conn, sql string, id int64) (d DeadLetter, err error) {
	err = conn.QueryRow(ctx, sql, binary, id).Scan(d.columns()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoDeadLetter
	}
	return d, err
}

// binary makes the values of a query come in the binary form, so that no setting of the session changes how
// times and bytes are printed. It asks the server for their types first.
const binary = pgx.QueryExecModeDescribeExec

// nullTime reads NULL as the zero time.
type nullTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (n nullTime) Scan(value any) error {
	t, _ := value.(time.Time)
	*n.to = t.UTC()
	return nil
}
