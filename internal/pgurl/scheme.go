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
// CheckScheme also refuses a URL with an @ after the one before the host: a password with @ or / was not encoded, and the
// driver would take a part of it for the host or the database, which errors name.
func CheckScheme(connection string) error {
	before, rest, found := strings.Cut(connection, "://")
	switch {
	case !found || !scheme.MatchString(before):
		return nil
	case before == "postgres" || before == "postgresql":
		rest, _, _ = strings.Cut(rest, "?")
		if at := strings.LastIndex(rest, "@"); strings.ContainsAny(rest[:max(at, 0)], "@/") {
			return errors.New("the connection string cannot be read: " + HowToConnect)
		}
		return nil
	}
	return errors.New("the connection string is a url of another kind: " + HowToConnect)
}
