package pgurl

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

var errPasswords = errors.New("the connection string has several hosts, and the password file does not have the same password for all of them: " +
	"the driver would send the first host's password to each. Write the password into the connection string, by a reference, " +
	"or give each host a line with the same password")

// CheckPasswords refuses a connection string of several hosts if the file with its password has another password, or
// none, for one of them: the driver takes the line of the first host and sends it to the next. It quotes no value.
func CheckPasswords(connection string, c *pgx.ConnConfig) error {
	for _, other := range c.Fallbacks {
		if other.Host == c.Host && other.Port == c.Port {
			continue
		}
		one, err := pgx.ParseConfig(ofHost(connection, other.Host, other.Port))
		if err != nil || one.Host != other.Host || one.Port != other.Port || one.Password != c.Password {
			return errPasswords
		}
	}
	return nil
}

// ofHost returns a connection string with one host. Of two equal settings the driver takes the later one.
func ofHost(connection, host string, port uint16) string {
	number := strconv.Itoa(int(port))
	rest, isURL := strings.CutPrefix(connection, "postgres://")
	if !isURL {
		rest, isURL = strings.CutPrefix(connection, "postgresql://")
	}
	if !isURL {
		return fmt.Sprintf("%s host='%s' port=%s", connection, quoted.Replace(host), number)
	}
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		rest = rest[at+1:]
	}
	sign := "?"
	if strings.Contains(rest, "?") {
		sign = "&"
	}
	if strings.HasSuffix(rest, "?") || strings.HasSuffix(rest, "&") {
		sign = ""
	}
	return connection + sign + "host=" + strings.ReplaceAll(url.QueryEscape(host), "+", "%20") + "&port=" + number
}
