package pgurl

import (
	"errors"
	"regexp"
	"strings"
)

// HowToConnect explains how to write a connection string. It ends the errors about those that cannot be read.
const HowToConnect = "write it as postgres://user:password@host:5432/database, and percent-encode what is special in the password"

var scheme = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]*$`)

// CheckScheme refuses a connection string that is the URL of another kind of server. The driver takes such a string
// for settings. It would send one of them, whose name contains the password, to any server that runs on this machine.
func CheckScheme(connection string) error {
	before, _, found := strings.Cut(connection, "://")
	if !found || !scheme.MatchString(before) || before == "postgres" || before == "postgresql" {
		return nil
	}
	return errors.New("the connection string is a url of another kind: " + HowToConnect)
}
