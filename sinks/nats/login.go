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

// login is how a connection shows whose it is; nothing if it does not.
func (c Config) login() ([]nats.Option, error) {
	switch {
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, c.Password)}, nil
	case c.Token != "":
		return []nats.Option{nats.Token(c.Token)}, nil
	case c.Credentials != "":
		text, err := bounded.File(c.LoginFile())
		if err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		return []nats.Option{nats.UserCredentialBytes(text)}, nil
	case c.NKey != "":
		key, err := c.nkey()
		if err != nil {
			return nil, fmt.Errorf("read nkey: %w", err)
		}
		return []nats.Option{key}, nil
	}
	return nil, nil
}

func (c Config) nkey() (nats.Option, error) {
	text, err := bounded.File(c.LoginFile())
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	if !nkeys.IsValidPublicUserKey(public) {
		return nil, fmt.Errorf("%s holds no seed of a user", c.NKey)
	}
	return nats.Nkey(public, pair.Sign), nil
}

// LoginFile is the path that a connection reads Credentials or NKey from; "" if there is
// neither.
func (c Config) LoginFile() string {
	if c.Credentials != "" {
		return expand(c.Credentials)
	}
	return c.NKey
}

// expand is a path as the client of NATS reads it: with variables, and ~ for the home
// directory.
func expand(path string) string {
	path = os.ExpandEnv(path)
	if below, ok := strings.CutPrefix(path, "~"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, below)
		}
	}
	return path
}
