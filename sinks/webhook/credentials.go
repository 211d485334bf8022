package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Basic is a user and a password, RFC 7617. The zero value is none.
type Basic struct {
	// User is the name of the login.
	User string `knob:"user" need:"user: dispatcher"`
	// Password of the user; it may be empty, as where the user is an API key.
	//
	// In the file: the password of the user. Default: `""`, as where the user is an API key.
	Password string `knob:"password" secret:"true" like:"password: ${PASSWORD}"`
}

func (b Basic) encoded() string {
	return base64.StdEncoding.EncodeToString([]byte(b.User + ":" + b.Password))
}

// userOf returns the user of a URL.
func userOf(u *url.URL) (b Basic) {
	if u.User != nil {
		b.User = u.User.Username()
		b.Password, _ = u.User.Password()
	}
	return b
}

// authorization returns the value of the header; "" without Bearer, Basic and a user in the URL.
func (c Config) authorization(u *url.URL) string {
	switch user := userOf(u); {
	case c.Bearer != "":
		return "Bearer " + c.Bearer
	case c.Basic != Basic{}:
		return "Basic " + c.Basic.encoded()
	case user != Basic{}:
		return "Basic " + user.encoded()
	default:
		return ""
	}
}

// credentialFaults returns faults that quote nothing of the credentials. u is nil if the URL itself has a fault.
func (c Config) credentialFaults(u *url.URL) []error {
	var given []string
	for _, way := range []struct {
		name string
		is   bool
	}{
		{"a user in url", u != nil && u.User != nil},
		{"bearer", c.Bearer != ""},
		{"basic", c.Basic != Basic{}},
		{"Authorization in headers", hasHeader(c.Headers, "Authorization")},
	} {
		if way.is {
			given = append(given, way.name)
		}
	}
	var faults []error
	if len(given) > 1 {
		faults = append(faults, fmt.Errorf("several credentials are given (%s): keep one", strings.Join(given, ", ")))
	}
	if strings.ContainsFunc(c.Bearer, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		faults = append(faults, errors.New("bearer has a character that no token has: is there a space, or a line break at its end?"))
	}
	if (c.Basic != Basic{}) && (c.Basic.User == "" || strings.Contains(c.Basic.User, ":")) {
		faults = append(faults, errors.New("basic has a user that is empty, or has a colon in it"))
	}
	if strings.ContainsFunc(c.Basic.User+c.Basic.Password, isControl) {
		faults = append(faults, errors.New("basic has a control character: is there a line break at the end of the password?"))
	}
	return faults
}
