package processor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

var (
	here    = place{epoch: 7, position: "b", sequence: 20}
	retries = Retry{Initial: time.Millisecond, Max: time.Millisecond}
)

// sending returns deliveries at positions, numbered on from a place.
func sending(from place, positions ...cursor.Position) (ds []Delivery) {
	for i, position := range positions {
		ds = append(ds, Delivery{Record: Record{Position: position}, Epoch: from.epoch, Sequence: from.sequence + 1 + int64(i), Attempt: 1})
	}
	return ds
}

func TestProgress_WhatIsOwedIsDueWhereItWasLeftAlone(t *testing.T) {
	t.Parallel()
	made := stepOver(here, sending(here, "c", "d"))
	require.Equal(t, step{from: here, to: "d", n: 2}, made)
	for name, c := range map[string]struct {
		at  place
		due bool
	}{
		"the same lease, or the next one":  {here, true},
		"the commit had succeeded":         {place{7, "d", 22}, false},
		"another worker or a resume":       {place{8, "b", 20}, false},
		"a seek to a place before":         {place{8, "a", 19}, false},
		"a seek in the epoch of the lease": {place{7, "a", 19}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := progress{}
			p.acknowledged(made)
			if !c.due {
				require.Nil(t, p.due(c.at))
				require.Nil(t, p.due(here), "what is void stays so")
				return
			}
			require.Equal(t, made, *p.due(c.at))
			require.Equal(t, made, *p.due(c.at), "it is owed until it is durable")
			p.advanced(made)
			require.Nil(t, p.due(c.at))
		})
	}
}

func TestProgress_AnAtomicSinkOwesOnlyWhatWasCommittedWithoutItsAdvance(t *testing.T) {
	t.Parallel()
	made := stepOver(here, sending(here, "c"))
	p := progress{atomic: true}
	p.leased(cursor.Row{Holder: "other", Epoch: 6}, here, 5)
	p.attempted(here.position, sending(here, "c"), true)
	p.acknowledged(made)
	p.recalled(here, &cursor.Failure{Position: "c", Attempts: 1}, retries)
	require.Nil(t, p.due(here))
	require.Zero(t, p.doubt)
	require.Empty(t, p.sent.positions)
	p.undone(made)
	require.Equal(t, made, *p.due(here))
	require.Equal(t, made, *p.due(here), "also if the next attempt fails")
}

func TestProgress_AnAdvanceEndsFailuresAndRunsAndPassesWhatWasSent(t *testing.T) {
	t.Parallel()
	p := progress{letters: 3, failures: 4}
	p.attempted("b", sending(here, "c", "d", "e"), true)
	require.NotZero(t, p.failed("c", errors.New("503"), cursor.ClassTransient, retries))
	require.Equal(t, 1, p.attempts("c"))
	require.Zero(t, p.attempts("d"))
	require.Equal(t, 5, p.failures)
	require.Equal(t, 1, p.advanced(step{from: here, to: "c", n: 1}))
	require.Zero(t, p.advanced(step{from: place{7, "c", 21}, to: "d", n: 1}), "the next record had not failed")
	require.Zero(t, p.failures)
	require.Zero(t, p.letters)
	require.Nil(t, p.stuck)
	require.Equal(t, doubt{"d", 1}, p.doubt)
	require.Equal(t, []cursor.Position{"e"}, p.sent.positions)
	require.EqualValues(t, 22, p.sent.sequence)
}

func TestProgress_AnAttemptLeavesNumbersAndIfItIsOpenADoubt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		called int
		open   bool
		before doubt
		want   doubt
		sent   int
	}{
		"no call: the process began to end":  {0, false, doubt{}, doubt{}, 0},
		"a call with an answer":              {2, false, doubt{}, doubt{}, 2},
		"a call without one":                 {2, true, doubt{}, doubt{"b", 2}, 2},
		"a longer one had none before":       {1, true, doubt{"b", 3}, doubt{"b", 3}, 1},
		"an answer ends no doubt":            {1, false, doubt{"b", 3}, doubt{"b", 3}, 1},
		"a doubt about another place is old": {1, true, doubt{"a", 3}, doubt{"b", 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := progress{doubt: c.before}
			p.attempted("b", sending(here, "c", "d", "e")[:c.called], c.open)
			require.Equal(t, c.want, p.doubt)
			require.Len(t, p.sent.positions, c.sent)
		})
	}
}

func TestProgress_AShorterCallForgetsNoNumberOfALongerOne(t *testing.T) {
	t.Parallel()
	p := progress{}
	p.attempted("b", sending(here, "c", "d", "e"), false)
	p.attempted("b", sending(here, "c"), false)
	require.Equal(t, []cursor.Position{"c", "d", "e"}, p.sent.positions)
}

func TestProgress_AfterAnotherWorkerItsChunkIsInDoubt(t *testing.T) {
	t.Parallel()
	old := doubt{"b", 1}
	for name, c := range map[string]struct {
		last    cursor.Epoch
		seen    cursor.Row
		atomic  bool
		want    doubt
		letters int
	}{
		"the first lease of a new cursor":        {0, cursor.Row{Epoch: 6}, false, old, 0},
		"the first lease of this run":            {0, cursor.Row{Holder: "me", Epoch: 7}, false, doubt{"b", 5}, 0},
		"one lease after another":                {7, cursor.Row{Holder: "me", Epoch: 7}, false, old, 2},
		"a take-over":                            {5, cursor.Row{Holder: "other", Epoch: 6}, false, doubt{"b", 5}, 0},
		"a decision before the look":             {6, cursor.Row{Holder: "me", Epoch: 7}, false, old, 0},
		"a decision between look and lease":      {6, cursor.Row{Holder: "me", Epoch: 6}, false, doubt{"b", 5}, 0},
		"workers before a decision of a new one": {0, cursor.Row{Epoch: 5}, false, doubt{"b", 5}, 0},
		"effects are in the transaction":         {5, cursor.Row{Holder: "other", Epoch: 6}, true, old, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := progress{atomic: c.atomic, epoch: c.last, doubt: old, letters: 2}
			p.leased(c.seen, here, 5)
			require.Equal(t, c.want, p.doubt)
			require.Equal(t, c.letters, p.letters)
			require.Equal(t, here.epoch, p.epoch)
		})
	}
}

func TestProgress_AVerdictHoldsWhereItWasReachedAndAFinalOneBeforeItsRecord(t *testing.T) {
	t.Parallel()
	v := verdict{from: here, delivery: sending(here, "d")[0]}
	for name, c := range map[string]struct {
		at             place
		holds, ifFinal bool
	}{
		"the next lease":                    {here, true, true},
		"an advance that was owed was made": {place{7, "c", 21}, false, true},
		"another worker, or a retry":        {place{8, "b", 20}, false, true},
		"a skip of the record":              {place{8, "d", 21}, false, false},
		"a seek to a place before":          {place{8, "a", 19}, false, false},
	} {
		for final, holds := range map[bool]bool{false: c.holds, true: c.ifFinal} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := v
				v.once = final
				p := progress{}
				p.judged(v)
				if !holds {
					require.Nil(t, p.pending(c.at))
					require.Nil(t, p.pending(here), "what is void stays so")
					return
				}
				require.Equal(t, v, *p.pending(c.at))
				p.halted()
				require.Nil(t, p.pending(c.at), "what is durable is not carried out again")
			})
		}
	}
}

func TestProgress_AHaltInTheRowIsTheVerdictOnItsRecordAlone(t *testing.T) {
	t.Parallel()
	p := progress{}
	p.haltSeen("d")
	p.judged(verdict{from: here, delivery: sending(here, "d")[0]})
	p.haltSeen("c")
	require.NotNil(t, p.pending(here))
	p.haltSeen("d")
	require.Nil(t, p.pending(here))
}

func TestProgress_ADeadLetterIsPassedLikeARecordAndCounted(t *testing.T) {
	t.Parallel()
	p := progress{letters: 1, failures: 2}
	p.attempted("b", sending(here, "c", "d"), true)
	p.failed("c", errors.New("422"), cursor.ClassPermanent, retries)
	p.judged(verdict{from: here, delivery: sending(here, "c")[0], deadLetter: true})
	p.deadLettered(here, "c")
	require.Nil(t, p.pending(here))
	require.Nil(t, p.stuck)
	require.Equal(t, 2, p.letters)
	require.Equal(t, 3, p.failures, "the receiver may be down: see Breaker")
	require.Equal(t, doubt{"c", 1}, p.doubt)
	require.Equal(t, []cursor.Position{"d"}, p.sent.positions)
}

func TestProgress_WhatIsPassedWithoutARecordIsBridgedUntilTheNextOne(t *testing.T) {
	t.Parallel()
	p := progress{}
	p.attempted("b", sending(here, "c", "d"), true)
	p.failed("c", errors.New("503"), cursor.ClassTransient, retries)
	p.writtenOff(here, "c", 1)
	require.Nil(t, p.stuck)
	require.Equal(t, doubt{"c", 1}, p.doubt)
	after := place{7, "c", 21}
	require.EqualValues(t, "b", p.bridge.before(after))
	p.passedOver(after, "f")
	require.Equal(t, doubt{"f", 1}, p.doubt, "what is in doubt may follow")
	after.position = "f"
	require.EqualValues(t, "b", p.bridge.before(after), "one bridge over both")
	require.EqualValues(t, "f", p.bridge.before(place{8, "f", 21}), "void in another epoch")
	require.EqualValues(t, "g", p.bridge.before(place{7, "g", 22}), "void after the next record")
}

func TestProgress_RecallsTheFailingRecordOfTheRow(t *testing.T) {
	t.Parallel()
	unreached := func(attempts int) *cursor.Failure {
		return &cursor.Failure{Position: "c", Attempts: attempts, Class: cursor.ClassUnreached}
	}
	for name, c := range map[string]struct {
		row       *cursor.Failure
		attempts  int
		unreached int
		failures  int
	}{
		"it has none":               {nil, 0, 0, 2},
		"its own, two attempts":     {&cursor.Failure{Position: "c", Attempts: 2, Class: cursor.ClassTransient}, 2, 1, 2},
		"another worker tried on":   {&cursor.Failure{Position: "c", Attempts: 9, Class: cursor.ClassTransient}, 9, 0, 9},
		"another one had an outage": {unreached(9), 9, 9, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := progress{}
			p.failed("c", errors.New("no route"), cursor.ClassUnreached, retries)
			p.failed("c", errors.New("503"), cursor.ClassTransient, retries)
			p.recalled(here, c.row, retries)
			require.Equal(t, c.attempts, p.attempts("c"))
			require.Equal(t, c.failures, p.failures)
			if c.row != nil {
				require.Equal(t, c.unreached, p.stuck.unreached)
				require.Equal(t, []cursor.Position{"c"}, p.sent.positions, "it has its number")
			}
		})
	}
}

func TestProgress_RecallsTheNumbersThatFitTheRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at   place
		row  *cursor.Failure
		want []cursor.Position
	}{
		"the same place":                {here, nil, []cursor.Position{"c", "d"}},
		"an operator skipped the first": {place{8, "c", 21}, nil, []cursor.Position{"d"}},
		"another worker delivered on":   {place{8, "e", 23}, nil, nil},
		"a seek took other numbers":     {place{8, "b", 5000}, nil, nil},
		"a seek back":                   {place{8, "a", 20}, nil, nil},
		"and the row has another":       {place{8, "e", 23}, &cursor.Failure{Position: "f"}, []cursor.Position{"f"}},
		"one that was never sent":       {place{8, "e", 23}, &cursor.Failure{Position: "f", Class: cursor.ClassUnreadable}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := progress{}
			p.attempted("b", sending(here, "c", "d"), false)
			p.recalled(c.at, c.row, retries)
			require.ElementsMatch(t, c.want, p.sent.positions)
			require.Equal(t, c.at.position, p.sent.after)
			require.Equal(t, c.at.sequence, p.sent.sequence)
		})
	}
}
