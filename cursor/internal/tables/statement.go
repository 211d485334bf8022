package tables

import (
	"strconv"
	"time"
)

// Statement is one SQL command with its parameters as text. The server infers the parameters' types. The only
// session state left is the version of a row, which a lease keeps there. So any pooler may be between.
type Statement struct {
	SQL  string
	Args []string
	Last []byte // one more argument, in the binary form; nil if there is none
}

// Null is the argument NULL: no text of PostgreSQL contains this character.
const Null = "\x00"

// The statements that begin, pin and end a transaction.
var (
	Begin     = Statement{SQL: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"}
	BeginRead = Statement{SQL: "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"}
	Commit    = Statement{SQL: "COMMIT"}
	Rollback  = Statement{SQL: "ROLLBACK"}
	Pin       = Statement{SQL: pinSQL}
)

// path is the search_path of our statements. Otherwise a role that may create an operator or a function in a
// schema that is searched first could run code with the rights of a worker. Statements that run before it is
// set, or under another search_path, name the schema of each operator and function.
const path = "pg_catalog, pg_temp"

// pinSQL sets the search_path until the transaction ends.
const pinSQL = `/* cursor.pin */ SELECT pg_catalog.set_config('search_path', '` + path + `', true)`

// Milliseconds is a duration as PostgreSQL's settings take it.
func Milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
