package processor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waits are the waits of so many passes in a row with the same outcome.
func waits(p *pace, s state, err error, n int) (all []time.Duration) {
	for range n {
		all = append(all, p.next(s, err))
	}
	return all
}

func TestPace_IdleGrowsFromFiveMillisecondsToPollAndStartsOverAfterWork(t *testing.T) {
	t.Parallel()
	p := newPace(200 * time.Millisecond)
	idles := waits(p, state{is: StateIdle}, nil, 20)
	require.Equal(t, 5*time.Millisecond, idles[0])
	require.Equal(t, 200*time.Millisecond, idles[19])
	require.IsNonDecreasing(t, idles)
	require.Zero(t, p.next(state{is: StateWorked}, nil))
	require.Equal(t, 5*time.Millisecond, p.next(state{is: StateIdle}, nil))
}

func TestPace_ARecordBehindTheFenceIsNoticedAfterATenthOfItsWait(t *testing.T) {
	t.Parallel()
	p := newPace(200 * time.Millisecond)
	var sum time.Duration
	for _, wait := range waits(p, state{is: StateWaiting}, nil, 60) {
		require.LessOrEqual(t, wait, max(minPoll, sum/10+minPoll))
		require.LessOrEqual(t, wait, 200*time.Millisecond)
		sum += wait
	}
	waits(p, state{is: StateIdle}, nil, 20)
	require.Equal(t, minPoll, p.next(state{is: StateWaiting}, nil), "what is seen after a lull is looked at soon again")
	require.Equal(t, time.Millisecond, p.next(state{is: StateWaiting, wait: time.Millisecond}, nil), "no longer than until it is due")
}

func TestPace_AWorkerThatStandsByTakesOverWithinOnePoll(t *testing.T) {
	t.Parallel()
	const poll = 200 * time.Millisecond
	require.Equal(t, poll, newPace(poll).next(state{is: StateStandby}, nil)+poll/patienceFraction)
}

func TestPace_ErrorsBackOffToFiveSecondsAndStartOverAfterAPassWithoutOne(t *testing.T) {
	t.Parallel()
	p := newPace(200 * time.Millisecond)
	errs := waits(p, state{}, errors.New("connection refused"), 12)
	require.InDelta(t, 100*time.Millisecond, errs[0], float64(20*time.Millisecond))
	require.InDelta(t, 5*time.Second, errs[11], float64(time.Second))
	require.Zero(t, p.next(state{is: StateWorked}, nil))
	require.InDelta(t, 100*time.Millisecond, p.next(state{}, errors.New("again")), float64(20*time.Millisecond), "it starts over")
}

func TestBackoff_DoublesToItsMaximumAndIsResumedWhereItStood(t *testing.T) {
	t.Parallel()
	config := Retry{Initial: 100 * time.Millisecond, Max: time.Second}
	first := newStuck("p", 0, config)
	var delays []time.Duration
	for range 6 {
		delays = append(delays, first.again(errors.New("no")))
	}
	require.Equal(t, []time.Duration{100e6, 200e6, 400e6, 800e6, 1e9, 1e9}, delays)
	require.Equal(t, 6, first.attempts)
	require.Equal(t, 400*time.Millisecond, newStuck("p", 2, config).again(errors.New("no")))
	require.Equal(t, time.Second, newStuck("p", 1_000_000, config).again(errors.New("no")))
}

func TestBackoff_IsNeverLongerThanItsMaximum(t *testing.T) {
	t.Parallel()
	stuck := newStuck("p", 1_000_000, Retry{Initial: 100 * time.Millisecond, Max: time.Second, Jitter: 100})
	for range 100 {
		require.LessOrEqual(t, stuck.again(errors.New("no")), time.Second)
	}
}

func TestBackoff_HonoursTheReceiversDelayUpToAnHour(t *testing.T) {
	t.Parallel()
	config := Retry{Initial: 100 * time.Millisecond, Max: time.Second, Jitter: 20}
	require.Equal(t, time.Minute, newStuck("p", 0, config).again(RetryAfter(errors.New("503"), time.Minute)))
	require.Equal(t, time.Hour, newStuck("p", 0, config).again(RetryAfter(errors.New("503"), 24*time.Hour)))
	delay := newStuck("p", 0, config).again(RetryAfter(errors.New("503"), time.Millisecond))
	require.InDelta(t, 100*time.Millisecond, delay, float64(20*time.Millisecond))
}
