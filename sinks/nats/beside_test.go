package nats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// TestCheck_NamesWhatADeclaredStreamLacksForOthers: the process that delivers first makes the stream, and the other one halted at
// its first record. What the finding says is enough for both.
func TestCheck_NamesWhatADeclaredStreamLacksForOthers(t *testing.T) {
	t.Parallel()
	of := func(process string) []processor.Delivery {
		ds := sinktest.Deliveries(1, 1)
		ds[0].Process = process
		return ds
	}
	for name, c := range map[string]struct {
		first, second, fixed []string
		fix                  string
	}{
		"one fence":              {[]string{"bookings.>"}, []string{"bookings.>"}, []string{"bookings.>", "ordered-fence.mail"}, "'bookings.>,ordered-fence.mail'"},
		"other subjects as well": {[]string{"bookings.>"}, []string{"mails.>", "bookings.*"}, []string{"bookings.>", "ordered-fence.mail", "mails.>"}, "'bookings.>,ordered-fence.mail,mails.>'"},
		"all fences":             {[]string{"bookings.>", "ordered-fence.*"}, []string{"bookings.>"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, nil)
			sink := func(subjects []string) *nats.Sink {
				return declaring(t, s, func(c *nats.Config) {
					c.User, c.Password, c.Declare = user, password, &nats.Declare{Subjects: subjects}
				})
			}
			second := sink(c.second)
			elsewhere := declaring(t, s, func(c *nats.Config) { c.Stream = "OTHERS" })
			others := []nats.Beside{{Process: "mail", Sink: second}, {Process: "pay", Sink: elsewhere}}
			found, err := sink(c.first).Check(t.Context(), "sms", others...)
			require.NoError(t, err)
			require.Contains(t, found[0].Problem, "the first delivery makes it")
			if c.fixed == nil {
				require.Len(t, found, 1)
				c.fixed = c.first
			} else {
				require.Len(t, found, 2)
				require.True(t, found[1].Weakens)
				require.Equal(t, `the declared stream "BOOKINGS" does not take the subjects of process "mail", which uses it, too: if this process makes the stream, the other one halts at its first record, or waits`, found[1].Problem)
				require.Equal(t, "set subjects in declare of this process to "+c.fix, found[1].Fix)
			}
			fixed := sink(c.fixed)
			found, err = fixed.Check(t.Context(), "sms", others...)
			require.NoError(t, err)
			require.Len(t, found, 1, "there is no stream yet, and nothing else")
			sinktest.Delivered(t, fixed, of("sms"))
			sinktest.Delivered(t, second, of("mail"))
		})
	}
}
