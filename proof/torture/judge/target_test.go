package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

const target = "target" // a sql sink with a database of its own

// targeted is a process to another database, which refused row 2 for a while: it is put aside, and replayed so often.
func targeted(replays int) *scene {
	s := stage().others("")
	s.Setting.Processes = append(s.Setting.Processes, history.Process{Name: target, Table: "t", Sink: history.Remote, Checkpoint: 1, Letters: true})
	s.at[target] = history.Standing{State: "running"}
	s.takeOver(target)
	s.land(1)
	s.advance(target, 1)
	s.fault(history.Begin, 1, history.TargetRefuses, "", target)
	s.advance(target, 2)
	s.event(target, "dead_letter")
	s.Letters = append(s.Letters, history.Letter{
		Tx: s.Moves[len(s.Moves)-1].Tx, Process: target, Key: key(2), Position: position(2), Hash: hash(2), Sequence: 2, Resolution: "replayed"})
	s.fault(history.Ended, 1, history.TargetRefuses, "", target)
	for range replays {
		s.land(2)
	}
	for rank := 3; rank <= rows; rank++ {
		s.land(rank)
		s.advance(target, rank)
	}
	return s.end()
}

// land is a row that the target has.
func (s *scene) land(rank int) {
	s.Applied = append(s.Applied, history.Applied{N: int64(len(s.Applied) + 1), Process: target, Key: key(rank), Position: position(rank), Hash: hash(rank), Sequence: int64(rank)})
}

func TestJudge_ATargetHasWhatWasReplayedOnce(t *testing.T) {
	t.Parallel()
	v := judge.Judge(targeted(1).Run)
	require.Empty(t, v.Violations)
	require.Equal(t, 1, v.ReplayedLetters)
	require.NotZero(t, judge.Judge(targeted(0).Run).Counts["I1"], "never")
	require.NotZero(t, judge.Judge(targeted(2).Run).Counts["I5"], "twice")
}

func TestJudge_NothingIsPutAsideThatNoTargetRefused(t *testing.T) {
	t.Parallel()
	s := targeted(1)
	s.Faults = nil
	require.NotZero(t, judge.Judge(s.Run).Counts["I10"])
}

// A record that the target refused, and that could not be put aside since its row was kept, halts its process.
func TestJudge_WhatATargetRefusesMayHaltItsProcess(t *testing.T) {
	t.Parallel()
	halt := func(s *scene) *scene {
		s.Ends = nil
		s.state(target, "halted", "halt")
		s.state(target, "running", "retry")
		return s.end()
	}
	require.Empty(t, judge.Judge(halt(targeted(1)).Run).Violations)

	s := halt(targeted(1))
	s.Faults = nil
	require.NotZero(t, judge.Judge(s.Run).Counts["I10"])
}
