package answer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// refused is an error of connecting, in words of ours.
type refused struct {
	error
	text string
}

func (r refused) Error() string { return r.text }

func (r refused) Unwrap() error { return r.error }

// OneLine returns an error of connecting that names each cause once, in one line. The driver tries each address with
// TLS and without it. So it names most causes twice, in lines that begin with a tab.
func OneLine(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	var texts []string
	for _, cause := range causes(connect) {
		if text := cause.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return refused{err, fmt.Sprintf("failed to connect to `user=%s database=%s`: %s", connect.Config.User, connect.Config.Database, strings.Join(texts, "; "))}
}

// causes returns why the attempts failed. If the only host answered one of them, that is the cause: another one of its
// addresses did not, or it refused TLS and was tried without.
func causes(connect *pgconn.ConnectError) []error {
	all := attempts(connect)
	several := slices.ContainsFunc(connect.Config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != connect.Config.Host || f.Port != connect.Config.Port
	})
	unanswered := func(cause error) bool {
		var pgErr *pgconn.PgError
		return !errors.As(cause, &pgErr)
	}
	if answered := slices.DeleteFunc(slices.Clone(all), unanswered); len(answered) > 0 && !several {
		return answered
	}
	return all
}

// attempts returns the error of each attempt.
func attempts(connect *pgconn.ConnectError) []error {
	for err := connect.Unwrap(); err != nil; err = errors.Unwrap(err) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return joined.Unwrap()
		}
	}
	return []error{connect.Unwrap()}
}
