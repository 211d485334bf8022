package sql

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestCheck_NoQuestionWaitsForEver: the server falls silent at the first question of
// each call.
func TestCheck_NoQuestionWaitsForEver(t *testing.T) {
	t.Parallel()
	ctx := context.Background() // without an end: parts that run in parallel wait for one another
	remote := func(address string) *Remote {
		r, err := NewRemote(Config{URL: address, Statements: []string{"SELECT @id::text"}, Timeout: 5 * time.Second})
		require.NoError(t, err)
		return r
	}
	local := func(call func(*Sink, *pgx.Conn) error) func(string) error {
		return func(address string) error {
			conn, err := pgx.Connect(ctx, address)
			require.NoError(t, err)
			defer conn.Close(context.Background())
			s := newSink(t, "SELECT @id::text")
			s.patience = 5 * time.Second
			return call(s, conn)
		}
	}
	for name, call := range map[string]func(address string) error{
		"check": local(func(s *Sink, conn *pgx.Conn) error { return s.Check(ctx, conn) }),
		"needs": local(func(s *Sink, conn *pgx.Conn) error { _, err := s.Needs(ctx, conn); return err }),

		"check of a remote":   func(address string) error { return remote(address).Check(ctx) },
		"needs of a remote":   func(address string) error { _, err := remote(address).Needs(ctx); return err },
		"lacking of a remote": func(address string) error { _, err := remote(address).Lacking(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, l := pgtest.Proxy(t, pgtest.URL(t))
			silent := l.Hold(link.Server, func(data []byte) bool { return bytes.Contains(bytes.ToLower(data), []byte("begin")) })
			err := call(address)
			<-silent
			require.ErrorIs(t, err, answer.ErrNone)
			require.ErrorContains(t, err, "no answer from the database within 5s")
		})
	}
}
