package notify

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// Sender sends messages to one target.
type Sender struct {
	target  Target
	kind    kind
	timeout time.Duration
	secrets secret.Set
}

// kind is a way to send.
type kind interface {
	// send sends a message.
	send(ctx context.Context, m Message) error
	// reach tries the address without sending a message.
	reach(ctx context.Context) error
	// String names the target without secrets.
	String() string
}

// New makes the sender of a target, and connects to nothing.
func New(t Target) (*Sender, error) {
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	s := &Sender{target: t}
	switch {
	case t.Webhook != nil:
		c := *t.Webhook
		knob.Fill(&c)
		s.kind, s.timeout, s.secrets = newWebhook(c), c.Timeout, secret.New(append(values(c.Headers), c.Secret, pathOf(c.URL))...)
	case t.Slack != nil:
		c := *t.Slack
		knob.Fill(&c)
		s.kind, s.timeout, s.secrets = newSlack(c), c.Timeout, secret.New(pathOf(c.URL))
	case t.SMTP != nil:
		c := *t.SMTP
		knob.Fill(&c)
		s.kind, s.timeout, s.secrets = newMailer(c), c.Timeout, secret.New(c.Password)
	case t.Exec != nil:
		c := *t.Exec
		knob.Fill(&c)
		redactor := child.NewRedactor(values(c.Env)...)
		s.kind, s.timeout, s.secrets = program{c, redactor}, c.Timeout, redactor.Set
	default:
		return nil, fmt.Errorf("target %s: %w", t.Name, errNoKind)
	}
	return s, nil
}

// Target returns the settings of the sender.
func (s *Sender) Target() Target { return s.target }

// String names the target without secrets.
func (s *Sender) String() string { return s.target.Name + " (" + s.kind.String() + ")" }

// LogValue names the target in a log, without secrets.
func (s *Sender) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Send sends a message, and returns within the timeout of the target. nil: the target has it. After an error it may
// have it, too. The error contains no secret.
func (s *Sender) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.kind.send(ctx, m); err != nil {
		return fmt.Errorf("tell %s: %w", s, s.secrets.Error(err))
	}
	return nil
}

// Reach tries the address of the target without sending a message: a connection with TLS, the login of a mail server,
// or whether the program is there.
func (s *Sender) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.kind.reach(ctx); err != nil {
		return fmt.Errorf("reach %s: %w", s, s.secrets.Error(err))
	}
	return nil
}

func values(of map[string]string) (all []string) {
	for _, value := range of {
		all = append(all, value)
	}
	return all
}

// LaterError asks to wait before the next attempt.
type LaterError struct {
	Err   error
	After time.Duration
}

// Error returns the text of Err.
func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LaterError) Unwrap() error { return e.Err }
