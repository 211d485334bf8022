package sql

import (
	"errors"
	"strings"
)

// Config describes a sink.
type Config struct {
	// Statement is one or more SQL commands, separated by ";", with the arguments
	// of the package comment. It is trusted as code. Tables are looked up in the
	// search_path of the cursor's connection, so qualify them with their schema.
	// Required.
	Statement string
	// RequireRow has each command touch at least one row, or return one: a record for which
	// one of them does not fails for good, with nothing applied. Commands that the server
	// counts no rows of, such as CALL, pass. Without it any count will do, also that of an
	// UPDATE that finds no row.
	RequireRow bool
	// Secrets are kept out of what is quoted of the server: those within Statement.
	Secrets []string
}

// validate returns every fault at once.
func (c Config) validate() error {
	switch {
	case strings.TrimSpace(c.Statement) == "":
		return errors.New("the statement is missing: write what is to be done with a record, such as INSERT INTO … VALUES (@id, @payload)")
	case strings.Contains(c.Statement, "\x00"):
		return errors.New("the statement holds a NUL byte, which ends it for the server: remove it")
	}
	_, err := parse(c.Statement)
	return err
}
