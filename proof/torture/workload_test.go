package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

func TestWorkloads_NameOnlyWhatThereIs(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	unique := func(sort, name string) {
		require.NotEmpty(t, name, sort)
		require.False(t, named[sort+name], "two %s are called %s", sort, name)
		named[sort+name] = true
	}
	for _, s := range sources() {
		unique("source", s.name)
	}
	for _, p := range processes() {
		unique("process", p.Name)
		require.Contains(t, named, "source"+p.Table)
	}
	for _, s := range slots() {
		unique("slot", s.name)
	}
	for _, w := range writes() {
		unique("write", w.name)
		require.Positive(t, w.weight, w.name)
		for _, into := range w.into {
			require.Contains(t, named, "source"+into)
		}
	}
	for _, w := range workloads() {
		for process := range w.faults {
			require.Contains(t, named, "process"+process)
		}
	}
}

// A process that no daemon runs is never delivered; one that only one runs has no successor.
func TestWorkloads_EveryProcessHasTwoDaemons(t *testing.T) {
	t.Parallel()
	for _, p := range processes() {
		daemons := 0
		for _, s := range slots() {
			if s.run(p) {
				daemons++
			}
		}
		require.GreaterOrEqual(t, daemons, 2, p.Name)
	}
}

func TestSource_InsertsWhatMeetsItsCondition(t *testing.T) {
	t.Parallel()
	s := source{name: "wanted", table: "rare", where: "wanted", with: []column{{"wanted", "true"}}}
	require.Equal(t, "INSERT INTO app.rare (key, payload, wanted) VALUES ($1, $2, true), ($3, $4, true)", s.insert(2))
	require.Equal(t, "(SELECT * FROM app.rare WHERE wanted) some_of_them", s.rows())
	require.Equal(t, "app.clock", source{name: "clock"}.rows())
}

func TestSlot_RunsAllUnlessItSaysWhich(t *testing.T) {
	t.Parallel()
	require.True(t, slot{}.run(history.Process{}))
	require.False(t, slot{runs: func(p history.Process) bool { return p.Name == "a" }}.run(history.Process{Name: "b"}))
}

func TestSlot_HasTwoConnectionsForEachProcessAndTwoBesides(t *testing.T) {
	t.Parallel()
	only := func(p history.Process) bool { return p.Table == "clock" && p.Sink == history.SQL }
	for want, s := range map[[2]int]slot{{4, 0}: {runs: only}, {4, 4}: {runs: only, pool: fewest}, {9, 9}: {runs: only, pool: 9}} {
		allowed, set := s.conns()
		require.Equal(t, want, [2]int{allowed, set})
	}
}
