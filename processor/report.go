package processor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	// repeatInterval is how often an error that goes on is logged again, with how often it came meanwhile.
	repeatInterval = time.Minute
	// behindTime is after how much work without a rest the log reports that the process has caught up.
	behindTime = 10 * time.Second
	// futureTime is for how long a record waits for its own stamp before the log reports it, and futureStamp
	// how far ahead of the clock the stamp has to be.
	futureTime  = 10 * time.Second
	futureStamp = time.Second
)

// reporter logs the results of passes, once for each change.
type reporter struct {
	log *slog.Logger

	last     string    // the message of the trouble that goes on; "" = none
	began    time.Time // when the trouble began
	said     time.Time // when it was last logged
	repeated int       // how often it came since

	caughtUp bool      // the log has reported that the process has caught up
	standing bool      // the log has reported that the process stands by
	worked   bool      // whether it worked since it was last idle
	idle     time.Time // when there was last nothing left to deliver

	future     time.Time // since when a record of the future has been the next one; zero = it is not
	futureSaid time.Time // when that was last logged
}

func newReporter(log *slog.Logger) *reporter { return &reporter{log: log} }

func (r *reporter) pass(s state, err error) {
	switch {
	case errors.Is(err, errKept):
		r.trouble(slog.LevelError, "the cursor does not move; what was acknowledged is not sent again as long as this worker runs", "err", err)
	case errors.Is(err, cursor.ErrLeaseLost):
		r.trouble(slog.LevelWarn, "lost the lease", "err", err)
	case err != nil:
		r.trouble(slog.LevelError, "cannot work; trying again; `ordered-dispatcher doctor` names the fix", "err", err)
	case s.is == StateHalted:
		r.halted(s.halt.Failure)
	case s.is == StatePaused:
		r.trouble(slog.LevelInfo, "paused by an operator")
	case s.stranger != nil:
		r.trouble(slog.LevelWarn, "nothing is delivered: the cursor's row is locked, and not by a worker", "err", s.stranger)
	default:
		r.well(s)
	}
}

// trouble logs what keeps the process from working: when it begins or changes, and, for an error that goes on,
// once in each repeatInterval.
func (r *reporter) trouble(level slog.Level, what string, args ...any) {
	now, key, isError := time.Now(), what, false
	for i := 1; i < len(args); i += 2 {
		if err, ok := args[i].(error); ok {
			key, isError = key+err.Error(), true
		}
	}
	if r.last == "" {
		r.began = now
	}
	if key == r.last {
		r.repeated++
		if !isError || now.Sub(r.said) < repeatInterval {
			return
		}
		args = append(args, "repeated", r.repeated)
	}
	r.last, r.said, r.repeated = key, now, 0
	r.log.Log(context.Background(), level, what, args...)
}

// well logs what is worth knowing of a process that works: that it works again, that another worker delivers,
// that there is nothing left.
func (r *reporter) well(s state) {
	if r.last != "" {
		r.log.Info("recovered", "after", time.Since(r.began).Round(time.Millisecond))
		r.last, r.caughtUp = "", false
	}
	switch s.is {
	case StateStandby:
		if !r.standing {
			r.log.Info("standing by: another worker delivers")
		}
		r.standing = true
	case StateWorked:
		r.standing, r.worked = false, true
	case StateWaiting:
		r.waiting(s.ahead)
	case StateIdle:
		r.future = time.Time{}
		if !r.standing && (!r.caughtUp || r.worked && time.Since(r.idle) >= behindTime) {
			r.log.Info("caught up")
			r.caughtUp = true
		}
		r.worked, r.idle = false, time.Now()
	}
}

// waiting logs that a record stamped in the future, and all that follow it, have to wait.
func (r *reporter) waiting(ahead time.Duration) {
	now := time.Now()
	switch {
	case ahead <= futureStamp:
		r.future = time.Time{}
	case r.future.IsZero():
		r.future = now
	case now.Sub(r.future) >= futureTime && now.Sub(r.futureSaid) >= repeatInterval:
		r.futureSaid = now
		r.log.Warn("the next record is stamped ahead of the database's clock, and waits until then: if the stamp is wrong, `ordered-dispatcher doctor` prints the UPDATE that corrects it",
			"ahead", ahead.Round(time.Second))
	}
}
