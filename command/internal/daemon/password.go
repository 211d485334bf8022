package daemon

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// Secrets returns the secrets of the connection to the database: its password, including one from PGPASSWORD, a
// service file or a password file. A server, or another program in its place, may repeat it in an error. Passwords
// that came from files since the start, and the ones that they replaced, are included.
func (c Config) Secrets() secret.Set { return c.masks()() }

// masks returns a function that returns Secrets at any later time.
func (c Config) masks() func() secret.Set {
	parsed, err := pgx.ParseConfig(c.Database)
	if err != nil {
		parsed = &pgx.ConnConfig{} // an error is reported elsewhere
	}
	if c.renewal == nil {
		first := secret.New(parsed.Password)
		return func() secret.Set { return first }
	}
	c.renewal.learnFirst(parsed.Password)
	return c.renewal.secrets
}

// masked returns a logger that removes secrets from messages and attributes.
func masked(log *slog.Logger, secrets func() secret.Set) *slog.Logger {
	return slog.New(maskedLog{log.Handler(), secrets})
}

type maskedLog struct {
	slog.Handler
	secrets func() secret.Set
}

// Handle is called by slog.
func (m maskedLog) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, m.secrets().Replace(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(m.attr(a))
		return true
	})
	return m.Handler.Handle(ctx, clean)
}

// WithAttrs is called by slog.
func (m maskedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return maskedLog{m.Handler.WithAttrs(m.all(attrs)), m.secrets}
}

// WithGroup is called by slog.
func (m maskedLog) WithGroup(name string) slog.Handler {
	return maskedLog{m.Handler.WithGroup(name), m.secrets}
}

func (m maskedLog) all(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		clean = append(clean, m.attr(a))
	}
	return clean
}

func (m maskedLog) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindGroup:
		a.Value = slog.GroupValue(m.all(a.Value.Group())...)
	case slog.KindString:
		a.Value = slog.StringValue(m.secrets().Replace(a.Value.String()))
	case slog.KindAny:
		text := fmt.Sprint(a.Value.Any())
		if clean := m.secrets().Replace(text); clean != text {
			a.Value = slog.StringValue(clean)
		}
	}
	return a
}
