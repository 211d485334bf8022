package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// refusal is a word on one record, the child's or ours; the child is whole.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

func (s *Sink) refusal(d processor.Delivery, err error) error {
	return &refusal{fmt.Errorf("deliver record %q to %s: %w", d.ID, s, err)}
}

func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// unknownError is a failure with a record on its way, which the child may have
// dealt with.
type unknownError struct{ error }

func (e *unknownError) Unwrap() error { return e.error }

// Timeout marks the outcome as unknown.
func (e *unknownError) Timeout() bool { return true }

// unsent is a failure before the child had a record: its outcome is known, so it is
// no time-out to the processor.
func (s *Sink) unsent(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("deliver to %s: nothing was sent: %w", s, err)
}

// failed ends the child, of which nothing is known any more, and tells how.
func (s *Sink) failed(k *child, d processor.Delivery, err error) error {
	k.grace(err)
	how := k.end()
	return &unknownError{fmt.Errorf("deliver record %q to %s: %w (%s)%s; the child may have dealt with it", d.ID, s, err, how, k.words.tail())}
}

// unheard is failed for a record whose line was not written whole.
func (s *Sink) unheard(k *child, d processor.Delivery, err error) error {
	if errors.Is(err, syscall.EPIPE) {
		k.grace(errEnded)
	}
	how := k.end()
	return fmt.Errorf("deliver record %q to %s: the child did not take it: %w (%s)%s", d.ID, s, err, how, k.words.tail())
}

// redactor takes the values of Config.Env out of what a child says.
type redactor struct{ replacer *strings.Replacer }

// minSecret keeps short values, as "1", from being taken out everywhere.
const minSecret = 4

func newRedactor(c Config) *redactor {
	var pairs []string
	for _, value := range c.Env {
		if len(value) >= minSecret {
			pairs = append(pairs, value, "[…]")
		}
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

// clean makes a line of printable characters without secrets.
func (r *redactor) clean(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, r.replacer.Replace(strings.ToValidUTF8(text, "\uFFFD")))
}

// maxErrorText bounds what is quoted of a child, in bytes.
const maxErrorText = 1000

func cut(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	end := maxErrorText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
