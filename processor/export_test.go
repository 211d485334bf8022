package processor

import (
	"log/slog"
	"time"
)

// DefaultLogger is the logger that a process uses.
func (c Config) DefaultLogger() *slog.Logger { return c.withDefaults().Logger }

// AskWithin shortens what a round may ask the database for.
func (p *Process) AskWithin(d time.Duration) { p.patience = d }

// Reporter logs what rounds find.
type Reporter struct{ *reporter }

// NewReporter makes one.
func NewReporter(log *slog.Logger) Reporter { return Reporter{newReporter(log)} }

// Round is a round that ended with an error, or found nothing to deliver.
func (r Reporter) Round(err error) { r.pass(state{is: StateIdle}, err) }

// WarnOfTorn is Process.warnOfTorn.
func WarnOfTorn(p *Process, err error) { p.warnOfTorn(err) }

// PanicOf is the error of a sink that panicked with a text.
func PanicOf(ds []Delivery, text string) error { return newPanicError(text, nil, ds) }

// NewRunDelay is the least time for which others look when the server runs anew.
const NewRunDelay = newRunDelay
