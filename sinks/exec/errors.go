package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// refusal is an error about one record, the child's or ours; the child is intact.
func (s *Sink) refusal(d processor.Delivery, err error) error {
	return outcome.AboutRecord(fmt.Errorf("deliver record %q to %s: %w", visible.Cut(d.ID), s, err))
}

// unsent is a failure before the child had a record.
func (s *Sink) unsent(err error) error {
	unsent := fmt.Errorf("deliver to %s: nothing was sent: %w", s, outcome.Known(err))
	if cannotStart(err) {
		return processor.Refused(fmt.Errorf("%w; install the program, make it executable, or correct command, dir and user", unsent))
	}
	return processor.Unreached(unsent)
}

// cannotStart reports that there is no such program or directory, or that we cannot run it. That is so for every
// record.
func cannotStart(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.ENOTDIR)
}

// failed ends the child, whose state is no longer known, and returns how it ended. The child may have handled the
// record.
func (s *Sink) failed(k *run, d processor.Delivery, err error) error {
	k.grace(err)
	how := k.end()
	return outcome.Unknown(fmt.Errorf("deliver record %q to %s: %w (%s)%s; the child may have handled it", visible.Cut(d.ID), s, err, how, k.words.tail()))
}

// unheard is failed for a record whose line was not written whole.
func (s *Sink) unheard(k *run, d processor.Delivery, err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, errGone) {
		k.grace(errEnded)
	}
	how := k.end()
	return fmt.Errorf("deliver record %q to %s: the child did not take it: %w (%s)%s", visible.Cut(d.ID), s, err, how, k.words.tail())
}
