package cursor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// Store is the cursor table of one schema, as seen by one worker. It is safe
// for use by several goroutines.
type Store struct {
	db     *tables.DB
	config Config
	joined joined
	looks  looks    // the last looks for torn sessions
	takers sync.Map // processes whose row was seen to take an advance: see rehearse

	lookSQL, lockSQL, relockSQL, advanceSQL, advanceWithSQL string
}

// NewStore returns the store of config.Schema. Each lease takes one connection of the pool for as long as it
// lasts. So the pool needs one for every process, and more for reading: see Join. The caller closes the pool,
// after the last lease.
func NewStore(pool *pgxpool.Pool, config Config) (*Store, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("cursor store: %w", err)
	}
	s := &Store{db: tables.New(pool, config.Schema, config.Timeout), config: config}
	s.lookSQL, s.lockSQL, s.relockSQL = s.db.SQL(lookSQL), s.db.SQL(lockSQL), s.db.SQL(relockSQL)
	s.advanceSQL, s.advanceWithSQL = s.db.SQL(advanceSQL), s.db.SQL(advanceWithSQL)
	return s, nil
}

// Config returns the configuration of the store, with its defaults filled in.
func (s *Store) Config() Config { return s.config }

// Worker returns the name under which this store acquires leases.
func (s *Store) Worker() string { return s.config.Worker }

const lookSQL = `/* cursor.look */
SELECT` + rowColumns + `,
	` + startSQL + `
FROM {schema}.cursor
WHERE process_name OPERATOR(pg_catalog.=) $1`

// Look reads the row of a process. It takes neither a lock nor a transaction id. It returns ErrUnknown if there
// is no cursor.
func (s *Store) Look(ctx context.Context, process string) (Row, error) {
	row, err := s.Observe(ctx, process)
	row.start = start{}
	return row, err
}

// Observe is Look for a worker: the row also contains how its server began, for Seen.On.
func (s *Store) Observe(ctx context.Context, process string) (Row, error) {
	rows, err := s.look(ctx, process)
	if err != nil {
		return Row{}, s.db.Explain("read", process, err)
	}
	if len(rows) == 0 {
		return Row{}, s.db.Explain("read", process, ErrUnknown)
	}
	return rows[0], nil
}

const listSQL = `/* cursor.list */
SELECT` + rowColumns + `
FROM {schema}.cursor
ORDER BY process_name
LIMIT 10000`

// List reads the rows of all processes, by name, at most 10,000 of them.
func (s *Store) List(ctx context.Context) ([]Row, error) {
	results, err := s.ask(ctx, s.db.Statement(listSQL))
	var rows []Row
	if err == nil {
		rows, err = parseRows(results[0])
	}
	if err != nil {
		return nil, s.db.WithFix("list cursors", err)
	}
	return rows, nil
}

// look reads a row in a statement of its own, without a transaction: idle processes do so several times a
// second.
func (s *Store) look(ctx context.Context, process string) ([]Row, error) {
	conn, err := s.db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer tables.GiveBack(conn)
	if err := s.ready(ctx, conn, s.lookSQL); err != nil {
		return nil, err
	}
	results, err := tables.FlushWithin(ctx, s.db.Timeout, conn.Conn(), tables.Statement{SQL: s.lookSQL, Args: []string{process}})
	if err != nil {
		return nil, err
	}
	return parseRows(results[0])
}

// ready is prepared.Ready with a deadline. The statements are prepared and run under the
// search_path of the session.
func (s *Store) ready(ctx context.Context, conn *pgxpool.Conn, statements ...string) error {
	return answer.Within(ctx, s.db.Timeout, func(ctx context.Context) error {
		return prepared.Ready(ctx, conn.Conn(), nil, statements...)
	})
}

// createSQL makes the row and its audit event together or not at all. It makes neither if the cursor exists, or
// if its name was used before and was not given up ($3 = false).
//
// A server that was promoted, or a database that was restored, may have lost a cursor of that name. Then the
// new cursor's numbers begin past those that the lost one may have used.
var createSQL = `/* cursor.create */
WITH past AS (
	SELECT action
	FROM {schema}.cursor_event
	WHERE process_name = $1 AND action IN ('create', 'rename', 'renamed', 'forget')
	ORDER BY id DESC
	LIMIT 1
), created AS (
	INSERT INTO {schema}.cursor (process_name, position, system_identifier, timeline, database_oid, epoch, sequence, histories)
	SELECT $1, $2, ` + tables.PlaceOfSQL + `, ` + tables.BornSQL("$5", "$6", "$7", "$8") + `
	WHERE $3::boolean OR NOT EXISTS (SELECT 1 FROM past WHERE action <> 'forget')
	ON CONFLICT (process_name) DO NOTHING
	RETURNING process_name, position
), event AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, to_position)
	SELECT process_name, $4, 'create', CASE WHEN ` + tables.MayBeLaterSQL + ` THEN '` + mayBeLater + `' ELSE '' END, position FROM created
)
SELECT EXISTS (SELECT 1 FROM created), EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name = $1)`

const mayBeLater = "the server was promoted, or the database restored: an earlier cursor of this name may be lost, and the numbers begin past all that it may have used"

// Create makes the cursor of a process at a position, and reports whether it did. It leaves an existing cursor
// as it is. It does not make a cursor again that existed and was deleted or renamed (ErrDeleted, ErrRenamed),
// unless Forget gave it up.
func (s *Store) Create(ctx context.Context, process string, at Position) (bool, error) {
	return s.create(ctx, process, at, "false", false)
}

// CreateAnew is Create for a source whose ids have started again since the cursor was forgotten, or may have:
// see SeekAnew.
func (s *Store) CreateAnew(ctx context.Context, process string, at Position) (bool, error) {
	return s.create(ctx, process, at, "false", true)
}

// Recreate is Create for a cursor that may have existed before. The process starts over at the position:
// records after it that were delivered before come again.
func (s *Store) Recreate(ctx context.Context, process string, at Position) (bool, error) {
	return s.create(ctx, process, at, "true", false)
}

func (s *Store) create(ctx context.Context, process string, at Position, again string, anew bool) (bool, error) {
	var created, stood bool
	numbers, err := born(time.Now(), anew)
	if err != nil {
		return false, s.db.Explain("create", process, err)
	}
	results, err := s.db.Once(ctx, tables.CommitTimeout, tables.Begin, s.db.Statement(createSQL, append([]string{process, string(at), again, s.config.Worker}, numbers...)...))
	if err == nil {
		p := tables.Parser{Values: results[0].Rows[0]}
		created, stood = p.True(0), p.True(1)
	}
	if err == nil && !created && !stood {
		// It was deleted or renamed, or another worker makes it at this moment.
		if err := s.Past(ctx, process); !errors.Is(err, ErrExists) {
			return false, err
		}
	}
	if err != nil {
		return false, s.db.Explain("create", process, err)
	}
	return created, nil
}

// MayBeLost reports whether a missing cursor may have been lost: with the commits that a promoted standby had
// not received, or because it was younger than the backup that was restored. Then the numbers of a new cursor
// begin past those that the lost one may have used.
func (s *Store) MayBeLost(ctx context.Context) (bool, error) {
	results, err := s.ask(ctx, s.db.Statement("/* cursor.may_be_lost */\nSELECT "+tables.MayBeLaterSQL))
	if err != nil {
		return false, s.db.WithFix("look whether cursors may be lost", tables.Standby(err))
	}
	return string(results[0].Rows[0][0]) == "t", nil
}

// lockSQL locks the row of a process until the transaction ends, by its primary key, and never waits. One
// statement distinguishes a locked row (the cursor is known, but no row comes back) from one that does not
// exist. The settings end with the transaction:
//   - the server frees the lock of a silent worker after Config.Timeout;
//   - a lost advance would deliver records twice, so commits are durable even if they are off by the role's
//     default;
//   - a statement of a sink ends after the time-out of its call.
//
// The search_path of the session stays as it is, because the statements of a sink need it. So the statements
// that we run at every checkpoint name the schema of each operator and function, and pin comes before our other
// statements.
const lockSQL = `/* cursor.lock */
SELECT` + settingsSQL + `,
	EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name OPERATOR(pg_catalog.=) $1),
	` + identitySQL + `,
	locked.*
FROM (SELECT) one
LEFT JOIN (
	SELECT` + rowColumns + `,
		horizon,
		system_identifier,
		timeline,
		database_oid,
		ctid
	FROM {schema}.cursor
	WHERE process_name OPERATOR(pg_catalog.=) $1
	FOR UPDATE SKIP LOCKED
) locked ON true`

// settingsSQL are four columns: see lockSQL.
const settingsSQL = `
	pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true),
	CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END,
	pg_catalog.set_config('application_name', $3, true),
	pg_catalog.set_config('statement_timeout', $4, true)`

// These are the application names of the transactions that hold a lease. A fence over all open transactions may
// leave out those of ApplicationLease, which only write the cursor. It must count those of ApplicationTx, which
// may write anything.
const (
	ApplicationLease = "ordered-dispatcher lease "
	ApplicationTx    = "ordered-dispatcher tx "
)

// terms are the conditions under which the transactions of a lease are held.
type terms struct {
	application      string
	statementTimeout time.Duration // 0 = none
}

func (s *Store) lock(process string, t terms) tables.Statement {
	return tables.Statement{SQL: s.lockSQL, Args: []string{
		process, tables.Milliseconds(s.silence(t)), t.application + process, tables.Milliseconds(t.statementTimeout)}}
}

// relockSQL is lockSQL for the worker that has just advanced the row: it finds the row as the worker left it,
// or none. The worker reads the whole row only if it finds none.
const relockSQL = `/* cursor.relock */
SELECT` + settingsSQL + `,
	ctid
FROM {schema}.cursor
WHERE ctid OPERATOR(pg_catalog.=) ` + notedVersion + `
	AND process_name OPERATOR(pg_catalog.=) $1
	AND epoch OPERATOR(pg_catalog.=) $5
	AND position OPERATOR(pg_catalog.=) $6
	AND sequence OPERATOR(pg_catalog.=) $7
	AND state OPERATOR(pg_catalog.=) 'running'
FOR UPDATE SKIP LOCKED`

// relockedVersion is the column of relockSQL with the row's version.
const relockedVersion = 4

func (s *Store) relock(row Row, t terms) tables.Statement {
	lock := s.lock(row.Process, t)
	return tables.Statement{SQL: s.relockSQL, Args: append(lock.Args,
		strconv.FormatInt(int64(row.Epoch), 10), string(row.Position), strconv.FormatInt(row.Sequence, 10))}
}

// silenceMargin is how much longer than the time-out of a delivery the server waits, so that the worker can
// give up the delivery and write that down.
const silenceMargin = 10 * time.Second

// silence returns how long a worker may be silent before the server frees its lock. A sink may work in the
// transaction without running a statement. It has the connection meanwhile, so nothing can ask for a sign of
// life: the server waits for longer than a call.
func (s *Store) silence(t terms) time.Duration {
	if t.statementTimeout == 0 {
		return s.config.Timeout
	}
	return max(s.config.Timeout, t.statementTimeout+silenceMargin)
}

// These are columns of lockSQL: after the settings, whether the cursor is known, the identity of the server, and
// the row.
const (
	knownColumn  = 4
	serverColumn = knownColumn + 1
	lockedColumn = serverColumn + 4
)

// locked parses the result of a lock statement.
func locked(result *pgconn.Result) (lockedRow, error) {
	values := result.Rows[0]
	known, server, row := values[knownColumn], values[serverColumn:lockedColumn], values[lockedColumn:]
	switch {
	case row[0] != nil:
		return parseLocked(server, row)
	case string(known) == "t":
		return lockedRow{}, ErrHeld
	default:
		return lockedRow{}, ErrUnknown
	}
}
