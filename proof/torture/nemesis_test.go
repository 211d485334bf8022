package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// newNemesis is one with a kind of the test's own, and its history.
func newNemesis(t *testing.T, k kind) (*nemesis, func() []history.Fault) {
	t.Helper()
	dir := t.TempDir()
	log, err := history.Create(dir, history.NemesisActor)
	require.NoError(t, err)
	n := &nemesis{field: &field{clock: history.NewClock()}, log: log, kinds: map[history.Kind]kind{history.Kill: k}}
	return n, func() []history.Fault {
		require.NoError(t, log.Close())
		require.NoError(t, history.WriteAll(dir, history.SettingActor, []history.Setting{{}}))
		run, err := history.Read(dir)
		require.NoError(t, err)
		return run.Faults
	}
}

func faultOf(worker string, id int, at time.Duration) plan.Fault {
	return plan.Fault{ID: id, Kind: history.Kill, Worker: worker, At: at}
}

func TestNemesis_TheNextFaultOfAVictimWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var mu sync.Mutex
	var order []int
	n, faults := newNemesis(t, func(_ context.Context, _ *field, f plan.Fault, begin func()) error {
		begin()
		if f.ID == 1 {
			<-release
		}
		if f.ID == 3 {
			close(release) // another victim's fault does not wait
		}
		mu.Lock()
		defer mu.Unlock()
		order = append(order, f.ID)
		return nil
	})
	n.run(t.Context(), []plan.Fault{faultOf("A", 1, 0), faultOf("A", 2, 0), faultOf("B", 3, time.Millisecond)}, time.Minute, func(err error) { t.Error(err) })
	require.Len(t, order, 3)
	require.Less(t, slices.Index(order, 1), slices.Index(order, 2))
	require.Len(t, faults(), 6)
}

func TestNemesis_NotesWhatMetNobodyAsMissed(t *testing.T) {
	t.Parallel()
	n, faults := newNemesis(t, func(_ context.Context, _ *field, _ plan.Fault, begin func()) error {
		begin()
		return missed(io.EOF)
	})
	n.run(t.Context(), []plan.Fault{faultOf("A", 1, 0)}, time.Minute, func(err error) { t.Error(err) })
	noted := faults()
	require.Equal(t, []history.Phase{history.Begin, history.Missed}, []history.Phase{noted[0].Phase, noted[1].Phase})
	v := judge.Judge(&history.Run{Faults: noted})
	require.Equal(t, []judge.Tally{{Kind: history.Kill, Missed: 1}}, v.Faults)
}

func TestNemesis_BeginsNothingAfterItsTime(t *testing.T) {
	t.Parallel()
	n, faults := newNemesis(t, func(ctx context.Context, f *field, _ plan.Fault, begin func()) error {
		begin()
		for f.clock.Now() < 20*time.Millisecond {
			pause(ctx, time.Millisecond)
		}
		return nil
	})
	n.run(t.Context(), []plan.Fault{faultOf("A", 1, 0), faultOf("A", 2, 0)}, time.Millisecond, func(err error) { t.Error(err) })
	noted := faults()
	require.Equal(t, history.Missed, noted[len(noted)-1].Phase)
	require.Equal(t, 2, noted[len(noted)-1].ID)
}

func TestNemesis_AnErrorEndsTheRun(t *testing.T) {
	t.Parallel()
	broken := errors.New("the nemesis is broken")
	n, _ := newNemesis(t, func(context.Context, *field, plan.Fault, func()) error { return broken })
	var got error
	n.run(t.Context(), []plan.Fault{faultOf("A", 1, 0), faultOf("A", 2, time.Hour)}, time.Minute, func(err error) { got = err })
	require.ErrorIs(t, got, broken)
}

func TestKinds_EachCanBeInflicted(t *testing.T) {
	t.Parallel()
	all := kinds(slow{})
	require.Len(t, all, len(history.Kinds()))
	for _, k := range history.Kinds() {
		require.Contains(t, all, k)
	}
	for _, f := range plan.Make(1, 10*time.Minute, shape()) {
		require.Contains(t, all, f.Kind)
	}
}

func TestPlan_HasEnoughOfEveryKindInTenMinutes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		faults := plan.Make(seed, 10*time.Minute, shape())
		require.Greater(t, len(faults), 2300, "seed %d", seed)
		counts := map[history.Kind]int{}
		for _, f := range faults {
			counts[f.Kind]++
		}
		for _, kind := range history.Kinds() {
			require.GreaterOrEqual(t, counts[kind], 3, "seed %d: %s", seed, kind)
		}
	}
}

func TestShort_TheFixedSeedHasEveryKind(t *testing.T) {
	t.Parallel()
	all := shape()
	if lacks(all, fixedSeed) == nil {
		return
	}
	for seed := range uint64(20_000) {
		if lacks(all, seed) == nil {
			require.Fail(t, fmt.Sprintf("seed %d lacks %q: make fixedSeed %d, which lacks nothing", fixedSeed, lacks(all, fixedSeed), seed))
		}
	}
	require.Fail(t, "no seed has every kind in that time")
}

// lacks is which kinds a short run of a seed does not have.
func lacks(all plan.Shape, seed uint64) (kinds []history.Kind) {
	planned := map[history.Kind]bool{}
	for _, f := range plan.Make(seed, shortLength, all) {
		planned[f.Kind] = true
	}
	for _, k := range history.Kinds() {
		if !planned[k] {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// A bad run is replayed by what it prints: the same faults, of the same length.
func TestCommand_ReplaysTheSchedule(t *testing.T) {
	t.Parallel()
	o := options{seed: 20261120, length: 90 * time.Second}
	fields := strings.Fields(o.command())
	again, err := parseOptions(fields[3:], io.Discard)
	require.NoError(t, err)
	require.Equal(t, plan.Make(o.seed, o.length, shape()), plan.Make(again.seed, again.length, shape()))
}

func TestConfiguration_IsWhatTheDaemonReads(t *testing.T) {
	t.Parallel()
	text := requireAccepted(t, func(urlFile string) string {
		return configuration(slot{name: "A"}, urlFile, func(string) string { return "127.0.0.1:1" })
	})
	for _, p := range processes() {
		require.Contains(t, text, "\n  "+p.Name+":\n")
	}
}

func TestParseOptions_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-for", "1s"}, {"-for", "25h"}, {"more"}, {"-seed", "x"}} {
		_, err := parseOptions(args, io.Discard)
		require.Error(t, err, args)
	}
	o, err := parseOptions([]string{"-seed", "7", "-for", "10m", "-race"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "go run ./proof/torture -seed 7 -for 10m0s -race", o.command())
}
