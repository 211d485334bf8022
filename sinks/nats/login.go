package nats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// login is how a connection proves its identity at present, and the secret parts of the file that the login comes
// from.
type login struct {
	options []nats.Option
	secrets []string
}

func (c Config) login() (login, error) {
	switch {
	case c.User != "":
		return login{options: []nats.Option{nats.UserInfo(c.User, c.Password)}}, nil
	case c.Token != "":
		return login{options: []nats.Option{nats.Token(c.Token)}}, nil
	case c.Credentials != "":
		return c.credentials()
	case c.NKey != "":
		return c.nkey()
	}
	return login{}, nil
}

func (c Config) credentials() (login, error) {
	text, err := bounded.File(c.LoginFile())
	if err != nil {
		return login{}, fmt.Errorf("read credentials: %w", err)
	}
	jwt, err := nkeys.ParseDecoratedJWT(text)
	if err != nil {
		return login{}, fmt.Errorf("read credentials: %w", err)
	}
	// A bearer JWT is a login without the seed, so the seed may be missing.
	return login{[]nats.Option{nats.UserCredentialBytes(text)}, []string{jwt, seedIn(text)}}, nil
}

func (c Config) nkey() (login, error) {
	text, err := bounded.File(c.LoginFile())
	if err != nil {
		return login{}, fmt.Errorf("read nkey: %w", err)
	}
	pair, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return login{}, fmt.Errorf("read nkey: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return login{}, fmt.Errorf("read nkey: %w", err)
	}
	if !nkeys.IsValidPublicUserKey(public) {
		return login{}, fmt.Errorf("read nkey: %s holds no seed of a user", c.NKey)
	}
	return login{[]nats.Option{nats.Nkey(public, pair.Sign)}, []string{seedIn(text)}}, nil
}

// seedIn returns the seed in a file of credentials; "" if it has none.
func seedIn(text []byte) string {
	pair, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return ""
	}
	seed, err := pair.Seed()
	if err != nil {
		return ""
	}
	return string(seed)
}

// LoginFile returns the path of Credentials or NKey that a connection reads from; "" if neither is set.
func (c Config) LoginFile() string {
	if c.Credentials != "" {
		return expand(c.Credentials)
	}
	return c.NKey
}

// expand returns a path as the client of NATS reads it: with variables, and ~ for the home directory.
func expand(path string) string {
	path = os.ExpandEnv(path)
	if below, ok := strings.CutPrefix(path, "~"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, below)
		}
	}
	return path
}
