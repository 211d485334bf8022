//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package pglocal

import (
	"context"
	"errors"
)

func lock(context.Context, string) (unlock func(), err error) {
	return nil, errors.New("fetched PostgreSQL programs cannot be shared safely on this system; install PostgreSQL, or set DATABASE_URL to a running server")
}
