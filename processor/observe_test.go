package processor_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// events collects what a process tells, but for its idle rounds.
type events struct {
	mu  sync.Mutex
	all []processor.Event
}

func (e *events) observe(event processor.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// of returns the events of a kind.
func (e *events) of(kind processor.EventKind) []processor.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []processor.Event
	for _, event := range e.all {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found
}

func TestObserve_CountsWhatWasDelivered(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 5)
	sink := &receiver{answer: failing("2", 1, errRefused)}
	var seen events
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Checkpoint = 3
		c.Observe = seen.observe
		c.Retry.Initial = time.Millisecond
	})
	require.NoError(t, p.Drain(t.Context()))

	advanced := 0
	for _, e := range seen.of(processor.EventAdvance) {
		advanced += e.Records
		require.WithinDuration(t, time.Now(), e.Created, time.Minute)
	}
	require.Equal(t, 5, advanced)
	classes := map[cursor.Class]int{}
	for _, e := range seen.of(processor.EventAttempt) {
		require.Equal(t, "sms", e.Process)
		require.Positive(t, e.Took)
		classes[e.Class]++
	}
	require.Equal(t, map[cursor.Class]int{"": 5, cursor.ClassTransient: 1}, classes)
	require.Len(t, seen.of(processor.EventTakeOver), 1)
	passes := seen.of(processor.EventPass)
	require.Equal(t, processor.StateIdle, passes[len(passes)-1].State)
}

func TestObserve_TellsOfAHalt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 2)
	var seen events
	p := process(t, pool, processor.Each(&receiver{answer: failing("1", 9, processor.Permanent(errRefused))}), func(c *processor.Config) {
		c.Observe = seen.observe
	})
	var halted *processor.HaltError
	require.ErrorAs(t, p.Drain(t.Context()), &halted)
	require.Equal(t, []processor.Event{{Process: "sms", Kind: processor.EventHalt, Class: cursor.ClassPermanent}}, seen.of(processor.EventHalt))
}

// TestObserve_AHaltThatCannotBeWrittenDownIsNone: it counts once it stands in the
// row.
func TestObserve_AHaltThatCannotBeWrittenDownIsNone(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	var seen events
	start(t, process(t, pool, processor.Each(&receiver{answer: failing("1", 99, processor.Permanent(errRefused))}), func(c *processor.Config) {
		c.Observe = seen.observe
	}))
	eventually(t, "it is halted", func() bool { return row(t, pool).State == cursor.Halted })
	exec(t, pool, "ALTER TABLE dispatch.cursor ADD CONSTRAINT full_disk CHECK (state <> 'halted') NOT VALID")
	exec(t, pool, "UPDATE dispatch.cursor SET state = 'running'")
	eventually(t, "it tries to halt again, twice", func() bool { return len(seen.of(processor.EventLeaseLost)) >= 2 })
	require.Len(t, seen.of(processor.EventAttempt), 2, "without another call")
	require.Len(t, seen.of(processor.EventHalt), 1)
	exec(t, pool, "ALTER TABLE dispatch.cursor DROP CONSTRAINT full_disk")
	eventually(t, "it is halted again", func() bool { return len(seen.of(processor.EventHalt)) == 2 })
	require.Equal(t, cursor.Halted, row(t, pool).State)
}
