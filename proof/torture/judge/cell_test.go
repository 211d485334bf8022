package judge_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

const hook = "hook"

// replaced is a cell whose first server has rows 1 to 3, and is replaced by a standby that has not received row 3. Row 4 is the
// new server's, with the id that row 3 had.
func replaced() *scene {
	s := quiet()
	c := &s.Cell
	for rank := 1; rank <= 4; rank++ {
		c.Writes = append(c.Writes, history.Write{Step: history.Committed, Tx: key(rank), Table: "bare", Key: key(rank), Hash: hash(rank)})
	}
	c.Rows = []history.CellRow{
		{Table: "bare", Key: key(1), Hash: hash(1), Position: position(1), Servers: []int{1, 2}},
		{Table: "bare", Key: key(2), Hash: hash(2), Position: position(2), Servers: []int{1, 2}},
		{Table: "bare", Key: key(3), Hash: hash(3), Position: position(3), Servers: []int{1}},
		{Table: "bare", Key: key(4), Hash: hash(4), Position: position(3), Servers: []int{2}},
	}
	c.Reigns = []history.Reign{{Process: hook, Epoch: 1, Server: 1}, {Process: hook, Epoch: 1001, Server: 2}}
	c.Changes = []history.Change{{Kind: history.LossyPromotion, Server: 2, From: time.Second, To: 2 * time.Second, Recovered: time.Second}}
	for rank := 1; rank <= 3; rank++ {
		s.receipt(rank, int64(rank), 1, key(rank))
	}
	s.receipt(4, 1004, 1001, "k4, of the new history")
	s.Cell.Receipts[2].TakenOut = true
	c.Ends = []history.CellEnd{{Process: hook, Table: "bare", Receiver: "webhook", Once: true, Cursor: history.Standing{Position: position(3), State: "running"}, Last: position(3)}}
	return s
}

func (s *scene) receipt(rank int, sequence, epoch int64, dedup string) {
	s.Cell.Receipts = append(s.Cell.Receipts, history.Receipt{
		Process: hook, Receiver: "webhook", Key: key(rank), Hash: hash(rank), DedupKey: dedup, Sequence: sequence, Epoch: epoch,
	})
}

// last is what the new server sent.
func (s *scene) last() *history.Receipt { return &s.Cell.Receipts[3] }

func TestJudge_ALossyPromotionLosesWhatItsServerLost(t *testing.T) {
	t.Parallel()
	v := judge.Judge(replaced().Run)
	require.Empty(t, v.Violations)
	require.Equal(t, judge.CellVerdict{
		Processes: 1, Servers: 2, Receipts: 4, Records: 3, Gone: 1,
		Changes: []judge.CellTally{{Kind: history.LossyPromotion, Count: 1, Slowest: time.Second}},
	}, v.Cell)
}

// What a receiver has again under the same number is the same record.
func TestJudge_ARecordMayComeAgainToACell(t *testing.T) {
	t.Parallel()
	s := replaced()
	s.Cell.Ends[0].Once = false
	s.receipt(4, 1004, 1001, "k4, of the new history")
	require.Empty(t, judge.Judge(s.Run).Violations)
}

// Rows that a clock stamps which is behind stand before others that have come: they come when they are sought.
func TestJudge_WhatAClockStampsThatIsBehindComesLate(t *testing.T) {
	t.Parallel()
	s := replaced()
	s.Cell.Changes[0].Kind = history.ClockBehind
	s.Cell.Writes = slices.Delete(s.Cell.Writes, 2, 3)
	s.Cell.Receipts[2].TakenOut = false
	s.Cell.Rows[2].Servers = []int{1, 2}
	s.Cell.Rows[2].Position = position(4)
	s.Cell.Ends[0].Cursor.Position, s.Cell.Ends[0].Last = position(4), position(4)
	require.Empty(t, judge.Judge(s.Run).Violations)
}

// What is sent again after a receiver was emptied comes behind what it has had meanwhile.
func TestJudge_WhatAnEmptiedReceiverGetsAgainComesLate(t *testing.T) {
	t.Parallel()
	s := replaced()
	s.Cell.Ends[0].Emptied = true
	s.Cell.Receipts[0], s.Cell.Receipts[1] = s.Cell.Receipts[1], s.Cell.Receipts[0]
	require.Empty(t, judge.Judge(s.Run).Violations)
}

// badCells are histories of databases whose servers are replaced.
var badCells = map[string]badHistory{
	"a row of the last server never came": {"I14", func() *scene {
		s := replaced()
		s.Cell.Receipts = s.Cell.Receipts[:3]
		return s
	}},
	"a row came behind one that stands behind it": {"I14", func() *scene {
		s := replaced()
		s.Cell.Receipts[0], s.Cell.Receipts[1] = s.Cell.Receipts[1], s.Cell.Receipts[0]
		return s
	}},
	"a new history goes on below the one before": {"I15", func() *scene {
		s := replaced()
		s.Cell.Reigns[0].Epoch = 2002
		for i := range 3 {
			s.Cell.Receipts[i].Epoch = 2002
		}
		return s
	}},
	"a row of the last server was taken out, and came no more": {"I14", func() *scene {
		s := replaced()
		s.last().TakenOut = true
		return s
	}},
	"a table keeps a row that is gone": {"I14", func() *scene {
		s := replaced()
		s.Cell.Receipts[2].TakenOut = false
		return s
	}},
	"a committed row is in no server": {"I14", func() *scene {
		s := replaced()
		s.Cell.Rows = slices.Delete(s.Cell.Rows, 2, 3)
		s.Cell.Receipts = slices.Delete(s.Cell.Receipts, 2, 3)
		return s
	}},
	"a row is gone without a fault that loses it": {"I14", func() *scene {
		s := replaced()
		s.Cell.Changes[0].Kind = history.ClockBehind
		return s
	}},
	"a number stands for two records": {"I15", func() *scene {
		s := replaced()
		s.last().Sequence = 3
		return s
	}},
	"a dedup key stands for two records": {"I15", func() *scene {
		s := replaced()
		s.last().DedupKey = key(3)
		return s
	}},
	"a number comes twice where each is taken once": {"I15", func() *scene {
		s := replaced()
		s.receipt(4, 1004, 1001, "k4, of the new history")
		return s
	}},
	"an epoch is of two servers": {"I16", func() *scene {
		s := replaced()
		s.Cell.Reigns[1].Epoch, s.last().Epoch = 1, 1
		return s
	}},
	"a record of one server came under an epoch of another": {"I16", func() *scene {
		s := replaced()
		s.Cell.Receipts[2].Epoch = 1001
		return s
	}},
	"a record came under an epoch that no server began": {"I16", func() *scene {
		s := replaced()
		s.last().Epoch = 7
		return s
	}},
	"a record of the cell that nobody wrote": {"I2", func() *scene {
		s := replaced()
		s.receipt(9, 9, 1, key(9))
		return s
	}},
	"a record of the cell came with other contents": {"I9", func() *scene {
		s := replaced()
		s.last().Hash = "other"
		return s
	}},
	"a process of the cell stays halted": {"I17", func() *scene {
		s := replaced()
		s.Cell.Ends[0].Cursor.State = "halted"
		return s
	}},
	"a process of the cell is not at the end": {"I17", func() *scene {
		s := replaced()
		s.Cell.Ends[0].Cursor.Position = position(2)
		return s
	}},
	"a process of the cell does not go on after a change": {"I17", func() *scene {
		s := replaced()
		s.Cell.Changes[0].Stuck = []string{hook}
		return s
	}},
}
