package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

const sqlKind = "sql"

// SQLSink runs statements in the transaction that advances the cursor.
type SQLSink struct {
	oneAtATime
	Statement  string
	RequireRow bool
	secrets    []string // within the statement
}

// parseSQL returns a RemoteSQLSink where the file names another database.
func parseSQL(n yamlfile.Node) Sink {
	var s SQLSink
	m := n.Mapping("statement", "rows", "url", "schema", "timeout", "quote_answers")
	statement, ok := m.Need("statement", `statement: "INSERT INTO … VALUES (@id, @payload)"`)
	if !ok {
		return s
	}
	if slices.ContainsFunc(m.Names(), func(name string) bool { return name != "statement" && name != "rows" }) {
		return parseRemoteSQL(n, m)
	}
	m.Read("rows", func(n yamlfile.Node) { s.RequireRow = requireRow(n) })
	s.Statement = statement.Text()
	s.secrets = statement.References()
	if n.Sound() {
		if _, err := s.sink(); err != nil {
			statement.Refuse(err)
		}
	}
	return s
}

// requireRow reads `rows`: without it, any count of rows will do.
func requireRow(n yamlfile.Node) bool { return n.OneOf(atLeastOne) == atLeastOne }

const atLeastOne = "at_least 1"

func (s SQLSink) sink() (*sql.Sink, error) {
	return sql.New(sql.Config{Statement: s.Statement, RequireRow: s.RequireRow, Secrets: s.secrets})
}

// Kind is sql.
func (SQLSink) Kind() string { return sqlKind }

func (SQLSink) settings() map[string]string { return nil }

// confidential: the statement may hold a secret.
func (s SQLSink) confidential() map[string]string { return map[string]string{"statement": s.Statement} }

func (s SQLSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	sink, err := s.sink()
	if err == nil && d.rotation != nil {
		return processor.InTx(watchedTx{sink, d.rotation}), 0, nil
	}
	return processor.InTx(sink), 0, err
}

// examine checks the statements against the database, and the role's right to run
// them.
func (s SQLSink) examine(ctx context.Context, d *doctor, process string) error {
	sink, err := s.sink()
	if err != nil {
		return err
	}
	err = onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return sink.Check(ctx, conn.Conn()) })
	if err != nil {
		d.find(process, Refuse, sinkFix(err), "%v", err)
		return nil
	}
	needs, err := s.needs(ctx, d.pool)
	if denied(err) { // no right to make temporary functions, which nothing but this needs
		d.find(process, Note, "", "whether the role may run the sink's statement is not known: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	return d.missing(ctx, process, needs.Privileges)
}

func sinkFix(err error) string {
	if denied(err) {
		return grantsFix
	}
	return "fix the sink's statement"
}

// denied reports whether the server said that the role may not.
func denied(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "42501"
}

// needs are those of the statements.
func (s SQLSink) needs(ctx context.Context, pool *pgxpool.Pool) (needs privilege.Needs, err error) {
	sink, err := s.sink()
	if err != nil {
		return needs, err
	}
	err = onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		needs, err = sink.Needs(ctx, conn.Conn())
		return err
	})
	return needs, err
}
