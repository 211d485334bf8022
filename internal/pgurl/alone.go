package pgurl

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"
)

// unnamed is the user of a connection string that names none. It is not empty: the driver ignores an empty one.
const unnamed = " "

var (
	errService = errors.New("the connection string names a service: write its settings into the connection string")
	errUser    = errors.New("the connection string names no user: write it as postgres://user:password@host:5432/database")
	errHosts   = errors.New("the connection string has a [ without its ]")
)

var service = regexp.MustCompile(`(^|[?&\s])service(file)?\s*=`)

// setting is a setting of the driver, and its value if a connection string does not give one.
type setting struct{ name, value string }

// neutral returns all settings that the driver takes from the environment or from a service file. The files that the
// driver reads from a user's home directory by default stay.
func neutral() []setting {
	all := []setting{
		{"host", ""}, {"port", ""}, {"dbname", ""}, {"user", unnamed}, {"password", ""},
		{"sslmode", ""}, {"sslcertmode", "allow"}, {"sslsni", ""}, {"sslpassword", ""}, {"sslnegotiation", ""},
		{"connect_timeout", "0"}, {"target_session_attrs", "any"},
		{"min_protocol_version", ""}, {"max_protocol_version", ""}, {"channel_binding", ""}, {"require_auth", ""},
		{"krbspn", ""}, {"krbsrvname", ""},
	}
	all = append(all, home()...)
	for _, name := range parameters {
		all = append(all, setting{name, ""})
	}
	return all
}

// home returns the files in a user's home directory, as libpq reads them.
func home() []setting {
	passfile, dir := "", ""
	if runtime.GOOS == "windows" {
		if config, err := os.UserConfigDir(); err == nil {
			dir = filepath.Join(config, "postgresql")
			passfile = filepath.Join(dir, "pgpass.conf")
		}
	} else if user, err := os.UserHomeDir(); err == nil {
		dir, passfile = filepath.Join(user, ".postgresql"), filepath.Join(user, ".pgpass")
	}
	cert, key, root := existing(dir, "postgresql.crt"), existing(dir, "postgresql.key"), existing(dir, "root.crt")
	if cert == "" || key == "" {
		cert, key = "", ""
	}
	return []setting{{"passfile", passfile}, {"sslcert", cert}, {"sslkey", key}, {"sslrootcert", root}}
}

func existing(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); dir == "" || err != nil {
		return ""
	}
	return path
}

// ErrUnreadable means that the driver cannot read a connection string. The driver's own message may repeat the
// password.
var ErrUnreadable = errors.New("the connection string cannot be read")

// ParseAlone reads a connection string by itself. A setting that it does not give is the driver's default. Nothing
// comes from variables such as PGPASSWORD or from a service file, which are meant for another server. The string must
// name the user. The password may be in the password file at home, which names its servers. The errors repeat no
// value.
func ParseAlone(url string) (*pgx.ConnConfig, error) {
	if err := CheckScheme(url); err != nil {
		return nil, err
	}
	text, err := alone(url)
	if err != nil {
		return nil, err
	}
	if err := CheckFiles(text); err != nil {
		return nil, err
	}
	c, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, cmp.Or(MissingFile(text), ErrUnreadable)
	}
	if strings.TrimSpace(c.User) == "" {
		return nil, errUser
	}
	for name, value := range c.RuntimeParams {
		if value == "" {
			delete(c.RuntimeParams, name)
		}
	}
	if err := CheckPasswords(text, c); err != nil {
		return nil, err
	}
	return c, CheckParameters(c.RuntimeParams)
}

// alone returns a connection string with every setting: the given value, or else the driver's default.
func alone(url string) (string, error) {
	if service.MatchString(url) {
		return "", errService
	}
	var b strings.Builder
	rest, isURL := strings.CutPrefix(url, "postgres://")
	if !isURL {
		rest, isURL = strings.CutPrefix(url, "postgresql://")
	}
	if !isURL {
		for _, s := range neutral() {
			fmt.Fprintf(&b, "%s='%s' ", s.name, quoted.Replace(s.value))
		}
		return b.String() + url, nil // of two equal settings the driver takes the later one
	}
	named, query, err := authority(rest)
	if err != nil {
		return "", err
	}
	b.WriteString("postgres://?")
	for _, s := range neutral() {
		fmt.Fprintf(&b, "%s=%s&", s.name, escaped.Replace(s.value))
	}
	for _, s := range named {
		if s.value != "" {
			fmt.Fprintf(&b, "%s=%s&", s.name, inQuery.Replace(s.value))
		}
	}
	return b.String() + query, nil
}

var (
	quoted  = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	escaped = strings.NewReplacer("%", "%25", "&", "%26", "=", "%3D", " ", "%20")
	inQuery = strings.NewReplacer("&", "%26", "=", "%3D") // text that is percent-encoded already stays as it is
)

// authority returns the part of a url before its query, divided as the driver divides it.
func authority(rest string) (named []setting, query string, err error) {
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		user, password, _ := strings.Cut(rest[:at], ":")
		named = append(named, setting{"user", user}, setting{"password", password})
		rest = rest[at+1:]
	}
	rest, query, _ = strings.Cut(rest, "?")
	list, database, _ := strings.Cut(rest, "/")
	var hosts, ports []string
	for one := range strings.SplitSeq(list, ",") {
		host, port, _ := strings.Cut(one, ":")
		if inner, bracketed := strings.CutPrefix(one, "["); bracketed {
			if host, port, bracketed = strings.Cut(inner, "]"); !bracketed || port != "" && port[0] != ':' {
				return nil, "", errHosts
			}
			port = strings.TrimPrefix(port, ":")
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	return append(named, setting{"host", strings.Join(hosts, ",")}, setting{"port", strings.Join(ports, ",")}, setting{"dbname", database}), query, nil
}
