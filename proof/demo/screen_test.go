package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScreen_PrintsLinesWhereNobodyWatches(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newScreen(&out, nil)
	s.show("1 of 2")
	s.say("half-%s", "time")
	s.show("2 of 2")
	s.end()
	require.Equal(t, "1 of 2\nhalf-time\n2 of 2\n", out.String())
	require.Equal(t, time.Second, s.interval())
}

func TestScreen_KeepsOneLineUpToDateOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newScreen(&out, nil)
	s.terminal = true
	s.show("1 of 2")
	s.say("half-time")
	s.show("2 of 2")
	s.end()
	s.end()
	require.Equal(t, clearLine+"1 of 2"+clearLine+"half-time\n"+clearLine+"2 of 2\n", out.String())
}

func TestScreen_ShowsALogAsText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(screenLog{newScreen(&out, nil)})
	log.Debug("not this")
	log.Info("passing over a PostgreSQL", "dir", "/opt")
	require.Equal(t, "              passing over a PostgreSQL dir=/opt\n", out.String())
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestScreen_SaysWhenNobodyReads(t *testing.T) {
	t.Parallel()
	var failed error
	newScreen(brokenPipe{}, func(err error) { failed = err }).say("hello")
	require.EqualError(t, failed, "print: broken pipe")
}

func TestProgress_FitsIntoEightyColumns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &show{screen: newScreen(&out, nil), sms: &receiver{}, market: &market{}, began: time.Now()}
	s.screen.terminal = true
	s.market.committed.Store(9_999)
	s.sms.deliveries = []delivery{{Epoch: 12}}
	s.progress()
	require.Contains(t, out.String(), "committed  9999  delivered     0  waiting 9999  duplicates 1  epoch 12")
	s.screen.show(strings.Repeat("a", 100))
	require.True(t, strings.HasSuffix(out.String(), clearLine+strings.Repeat("a", 79)))
}

func TestPronounce_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := crashed()
	h.Deliveries = h.Deliveries[:len(h.Deliveries)-1]
	h.Deliveries[1].Digest = digest{}
	h.Kills[0].Held.Booking = 4
	var out strings.Builder
	newScreen(&out, nil).pronounce(judge(h))
	for _, line := range []string{
		"lost                 1  bookings 5",
		"booking 3 (sequence 3): no fault explains it",
		"delivered with altered contents       1  bookings 2",
		"BAD: 1 lost, 1 duplicated without a cause, 1 delivered with altered contents.",
	} {
		require.Contains(t, out.String(), line)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0.3 ms", short(300*time.Microsecond))
	require.Equal(t, "12 ms", short(12_400*time.Microsecond))
	require.Equal(t, "1.5 s", short(1500*time.Millisecond))
}
