package processor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func withoutStart(c *processor.Config) { c.Start = "" }

// A process that was renamed in its configuration has no cursor: it must not take
// that for a reason to send everything again.
func TestRun_ANewCursorOnATableWithRecordsNeedsAStart(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	sink := &receiver{}
	p := process(t, pool, processor.Each(sink), withoutStart)
	for _, run := range []func(context.Context) error{p.Drain, p.Run} {
		var noStart *processor.NoStartError
		require.ErrorAs(t, run(t.Context()), &noStart)
		require.EqualValues(t, 3, noStart.Records)
		require.False(t, noStart.More)
		require.ErrorContains(t, noStart, "`start: beginning` sends 3 records, `start: end` sends 0 of them")
		require.ErrorContains(t, noStart, "ordered-dispatcher process rename OLD sms")
	}
	require.Zero(t, sink.calls())
	_, err := store(t, pool).Look(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrUnknown, "no cursor was made")
}

func TestRun_ANewCursorOnAnEmptyTableNeedsNoStart(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sink := &receiver{}
	require.NoError(t, process(t, pool, processor.Each(sink), withoutStart).Drain(t.Context()))
	insert(t, pool, 2)
	require.NoError(t, process(t, pool, processor.Each(sink), withoutStart).Drain(t.Context()), "the cursor is there")
	require.Equal(t, 2, sink.calls())
}

// plain is a source that cannot count.
type plain struct{ processor.Source }

func TestRun_ASourceThatCannotCountNeedsAStartToo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	p := process(t, pool, processor.Each(&receiver{}), func(c *processor.Config) { c.Start, c.Source = "", plain{c.Source} })
	require.ErrorContains(t, p.Drain(t.Context()), "sends 1 records or more")
}

func TestRun_ARenamedCursorGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	log, sink := &logbook{}, &receiver{}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger = log.logger() }))
	eventually(t, "delivered", func() bool { return row(t, pool).Sequence == 3 })
	_, err := operator.New(store(t, pool)).Rename(t.Context(), "sms", "text", cursor.Decision{Actor: "alice"})
	require.NoError(t, err)
	insert(t, pool, 2)
	eventually(t, "the old worker says so", func() bool { return log.has("stop it, and run the process under its new name") })
	require.Equal(t, 3, sink.calls())

	old := process(t, pool, processor.Each(sink), nil)
	require.ErrorIs(t, old.Drain(t.Context()), cursor.ErrRenamed, "even with a start")
	require.NoError(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Process = "text" }).Drain(t.Context()))
	require.Equal(t, []string{"1/1", "2/1", "3/1", "4/1", "5/1"}, sink.attempts())
}

func TestRun_ACursorThatWasPausedBeforeItsFirstRunStartsWhereTheConfigurationSays(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	s, sink := store(t, pool), &receiver{}
	_, err := operator.New(s).Prepare(t.Context(), "sms", cursor.Unplaced, cursor.Paused, "pause", alice)
	require.NoError(t, err)
	require.ErrorIs(t, process(t, pool, processor.Each(sink), nil).Drain(t.Context()), cursor.ErrPaused)
	decide(t, pool, (*operator.Operator).Resume)
	require.ErrorContains(t, process(t, pool, processor.Each(sink), withoutStart).Drain(t.Context()), "Say where it starts")
	require.NoError(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Start = processor.End }).Drain(t.Context()))
	require.Zero(t, sink.calls())
	insert(t, pool, 1)
	require.NoError(t, process(t, pool, processor.Each(sink), nil).Drain(t.Context()), "it is not placed a second time")
	require.Equal(t, []string{"4/1"}, sink.attempts())
}

// eventful is a source beside which something happens while its records are counted.
type eventful struct {
	processor.Source
	happens func()
}

func (e eventful) Count(context.Context) (int64, bool, error) {
	e.happens()
	return 3, false, nil
}

// TestRun_ACursorThatIsMadeMeanwhileIsTakenUp: by a seek, or by a worker that has a start.
func TestRun_ACursorThatIsMadeMeanwhileIsTakenUp(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 3)
	log, sink := &logbook{}, &receiver{}
	p := process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Logger = log.logger()
		c.Start, c.Source = "", eventful{c.Source, func() {
			created(t, pool)
		}}
	})
	require.NoError(t, p.Drain(t.Context()))
	require.Equal(t, 3, sink.calls())
	require.False(t, log.has("level=ERROR"), "not even for a moment")
}
