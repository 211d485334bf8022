package exec_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// large makes the payload of a record large: words, of which each line has some.
func large(ds []processor.Delivery, size int) {
	for i := range ds {
		ds[i].Payload, _ = json.Marshal("customer-77 " + strings.Repeat("some words of the 77th customer, ", size/32))
	}
}

// To take a large record out of a line costs half a second, and a child that writes many
// lines is not to wait for that.
func TestDeliverBatch_AChildThatWritesMuchIsNotKeptFromItsAnswer(t *testing.T) {
	t.Parallel()
	for _, window := range []int{1, 20} {
		b := newBench(t)
		said := new(lines)
		s := b.sink(t, "drones", func(c *exec.Config) {
			c.Window, c.Timeout = window, 15*time.Second
			c.Logger = slog.New(slog.NewTextHandler(said, nil))
		})
		ds := sinktest.Deliveries(1, 40)
		large(ds[:1], 3<<20)
		large(ds[1:], 30<<10)
		sinktest.Delivered(t, s, ds)
		require.NoError(t, s.Close())
		require.Eventually(t, func() bool { return strings.Contains(said.String(), "more lines than are logged") }, time.Minute, 10*time.Millisecond)
		require.NotContains(t, said.String(), "customer", "a record's data")
	}
}

// What a line repeats is taken out though its record was given long before or just now.
func TestDeliverBatch_LinesAreLoggedInTheirOrderWithoutTheRecords(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"compared": 1 << 10, "too much to be compared": 5 << 20} {
		b := newBench(t)
		said := new(lines)
		s := b.sink(t, "drones", func(c *exec.Config) { c.Logger = slog.New(slog.NewTextHandler(said, nil)) })
		ds := sinktest.Deliveries(1, 1)
		large(ds, size)
		sinktest.Delivered(t, s, ds)
		require.NoError(t, s.Close())
		end := "line=[…]"
		if size < 4<<20 {
			end = "step z of the work is done as it is to be, for […]"
		}
		require.Eventually(t, func() bool { return strings.Contains(said.String(), end) }, time.Minute, 10*time.Millisecond, name)
		at := 0
		for i := 0; i < 26 && size < 4<<20; i++ {
			next := strings.Index(said.String()[at:], fmt.Sprintf("line=\"step %c of the work is done as it is to be, for […]\"", 'a'+i))
			require.GreaterOrEqual(t, next, 0, "line %d", i)
			at += next
		}
		require.NotContains(t, said.String(), "customer", name)
	}
}

// Lines are logged later than they are written: the child had other records by then.
func TestWords_ALineIsComparedWithTheRecordsOfItsTime(t *testing.T) {
	t.Parallel()
	said := new(lines)
	w := exec.NewWords(exec.Config{Logger: slog.New(slog.NewTextHandler(said, nil))})
	ds := sinktest.Deliveries(1, 6)
	for i, word := range []string{"alpha", "bravo", "charlie", "delta", "echo1", "foxtrot"} {
		ds[i].Payload = fmt.Appendf(nil, `"%s"`, word)
		w.Given(ds[i])
		w.Note("done with " + word)
	}
	require.False(t, w.Flush())
	require.Equal(t, 6, strings.Count(said.String(), `line="done with […]"`), said.String())
	w.Note("alpha is a record of the past")
	require.False(t, w.Flush())
	require.Contains(t, said.String(), "alpha is", "only the last ones are compared")
}

// What is taken out of a line is looked for in its unescaped forms, too: these stay in one
// line that a terminal can show.
func TestWords_WhatIsUnescapedIsPrintable(t *testing.T) {
	t.Parallel()
	said := new(lines)
	w := exec.NewWords(exec.Config{Logger: slog.New(slog.NewTextHandler(said, nil))})
	w.Given(sinktest.Deliveries(1, 1)[0])
	w.Note(`bad \u001b]0;owned\u0007 &#10;forged &#27;[31m`)
	w.Flush()
	require.Contains(t, said.String(), "forged")
	for _, escaped := range []string{"x1b", "\x1b", "\x07", "\\n", "\\a"} {
		require.NotContains(t, said.String(), escaped)
	}
}
