package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

func shape() plan.Shape {
	s := plan.Shape{Workers: []string{"A", "B", "C"}, Tables: []string{"t1", "t2", "t3", "t4"}}
	for i := range 16 {
		sink := history.Webhook
		if i%4 == 0 {
			sink = history.SQL
		}
		s.Processes = append(s.Processes, history.Process{Name: fmt.Sprint("p", i), Sink: sink, Letters: i%4 == 3})
	}
	return s
}

func TestMake_IsDecidedByTheSeed(t *testing.T) {
	t.Parallel()
	require.Equal(t, plan.Make(1, time.Minute, shape()), plan.Make(1, time.Minute, shape()))
	require.NotEqual(t, plan.Make(1, time.Minute, shape()), plan.Make(2, time.Minute, shape()))
}

func TestMake_AddsTheFaultsOfTheShape(t *testing.T) {
	t.Parallel()
	s := shape()
	s.Faults = map[string][]plan.Chance{"p1": {{Weight: 1000, Kind: "hard times"}}}
	s.Tracks = []plan.Track{{Victim: plan.Fault{Victim: "a stranger"}, Kinds: []plan.Chance{{Weight: 1, Kind: "bad luck"}}, Min: time.Second, Max: time.Second}}
	befell := map[history.Kind]map[plan.Fault]bool{"hard times": {}, "bad luck": {}}
	for _, f := range plan.Make(1, time.Minute, s) {
		if befell[f.Kind] != nil {
			befell[f.Kind][plan.Fault{Process: f.Process, Victim: f.Victim}] = true
		}
	}
	require.Equal(t, map[history.Kind]map[plan.Fault]bool{
		"hard times": {{Process: "p1"}: true},
		"bad luck":   {{Victim: "a stranger"}: true},
	}, befell)
}

func TestMake_FaultsOfOneVictimDoNotOverlapAndAllEnd(t *testing.T) {
	t.Parallel()
	const length = 5 * time.Minute
	ends := map[string]time.Duration{}
	for i, f := range plan.Make(7, length, shape()) {
		require.Equal(t, i+1, f.ID)
		require.LessOrEqual(t, f.At+f.For, length)
		victim := fmt.Sprint(f.Worker, "/", f.Process, "/", f.Table, "/", f.Broker)
		require.GreaterOrEqual(t, f.At, ends[victim], victim)
		ends[victim] = f.At + f.For
	}
}
