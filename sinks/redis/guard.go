package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// said is what the client makes of an answer that it cannot read, which it may quote.
type said struct{ error }

func (s *said) Unwrap() error { return s.error }

// heard marks an error of the client, unless it is known to have no words of Redis's beside a code.
func heard(err error) error {
	var (
		network     *net.OpError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case err == nil, isAnswer(err), errors.As(err, &network), errors.As(err, &certificate):
		return err
	}
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.Canceled, context.DeadlineExceeded, errTooMuch} {
		if errors.Is(err, known) {
			return err
		}
	}
	return &said{err}
}

// words finds Redis's words in an error.
func words(err error) (hidden string, ok bool) {
	switch e := err.(type) { // each error of a chain is asked by itself
	case *said:
		return secret.Hidden, true
	case redis.Error:
		if code := code(e); code != "" {
			return code + " " + secret.Hidden, true
		}
		return secret.Hidden, true
	default:
		return "", false
	}
}
