package sql

import (
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Config describes the statements of a sink, and their database. Zero values mean defaults.
type Config struct {
	// Statements are SQL commands that run in order, with the arguments of the package comment. They are trusted as
	// code. The server looks up tables in the search_path of the connection, so qualify them with their schema.
	// Required.
	//
	// In the file: an SQL statement, or a list of statements that run in order, with the
	// [arguments](sinks/sql/doc.go) `@id @key @type @payload @headers @created_at @sequence @position @dedup_key
	// @process @epoch`.
	Statements []string `knob:"statement" need:"statement: \"INSERT INTO … VALUES (@id, @payload)\"" one:"true"`
	// RequireRow makes each command touch at least one row, or return one. If a command does not, the record fails for
	// good, and nothing is applied. Commands for which the server counts no rows, such as CALL, pass. Without
	// RequireRow any count will do, including the count of an UPDATE that finds no row. With URL it costs one more
	// round trip for each transaction.
	//
	// In the file: with `at_least 1`, each statement must touch or return a row. A record for which one does not fails
	// for good, with nothing applied. Statements without a count of rows (`CALL`, `DO`) pass. With `url` this costs one
	// more round trip for each transaction. Default: any count, so an `UPDATE` that finds no row counts as applied.
	RequireRow bool `knob:"rows" true:"at_least 1"`
	// Secrets are the secrets within Statements. The sink keeps them out of quotes of the server.
	Secrets []string `references:"statement"`

	// URL of another database than the cursor's, for NewRemote, or its key=value form, with TLS by its own parameters
	// (sslmode, sslrootcert, sslcert, sslkey). Of several hosts the sink takes the one that can be written to, unless
	// target_session_attrs asks for another. The URL names the user. PGPASSWORD, similar variables and service files
	// do not count. A password may be in the file ~/.pgpass, the same for all hosts. Default: the database of the
	// cursor; then the fields below it have no meaning.
	//
	// In the file: another database and its user. TLS has its own parameters in `url`. Of several hosts, the sink uses
	// the one that can be written to. Default: the database of the cursor.
	URL string `knob:"url" secret:"true"`
	// Schema of the Remote's own tables in the target: see Remote.Tables.
	//
	// In the file: with `url`: the schema of the sink's two tables in that database.
	Schema string `knob:"schema" default:"public"`
	// Timeout bounds making a connection, and each statement, including the wait for a lock. The server ends a
	// statement that takes longer. One of several hosts has 3 s of it to take a connection, unless connect_timeout
	// sets another time.
	//
	// In the file: with `url`: bounds making a connection, and each statement.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	// HideAnswers keeps the server's words out of errors. The password and Secrets are kept out anyway.
	//
	// In the file: with `url`. With `false`, errors quote only the server's SQLSTATE, and what the sink itself has
	// noted there. The sink takes the password out of errors in any case.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
}

// statements returns the statements, or every fault of them at once.
func (c Config) statements() (statements []statement, err error) {
	if len(c.Statements) == 0 {
		err = errors.New("the statement is missing: write what is to be done with a record, such as INSERT INTO … VALUES (@id, @payload)")
	} else {
		statements, err = parse(c.Statements)
	}
	if err != nil {
		return nil, &knob.Fault{Name: "statement", Err: err}
	}
	return statements, nil
}
