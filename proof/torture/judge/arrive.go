package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// arrival is a row that comes into being.
type arrival struct {
	at   time.Duration
	rank int
}

// noteArrivals finds out when the rows of each table came, by what their producers noted. A row whose transaction ended
// unknown is not known to be committed at any time.
func noteArrivals(writes []history.Write, tables map[string]*table) {
	pending := map[string][]history.Write{} // by transaction
	for _, w := range writes {
		switch w.Step {
		case history.Insert:
			pending[w.Tx] = append(pending[w.Tx], w)
			if t := tables[w.Table]; t != nil && t.byKey[w.Key] > 0 {
				t.inserts = append(t.inserts, arrival{w.T, t.byKey[w.Key]})
			}
		case history.Committed:
			for _, insert := range pending[w.Tx] {
				if t := tables[insert.Table]; t != nil && t.byKey[insert.Key] > 0 {
					t.committed = append(t.committed, arrival{w.T, t.byKey[insert.Key]})
				}
			}
		}
	}
	for _, t := range tables {
		for _, all := range [][]arrival{t.inserts, t.committed} {
			slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
		}
	}
}

// behind counts for each question how many of the rows that had arrived by its time stand behind its rank. It takes
// O((rows + questions) log rows), by a Fenwick tree.
func behind(arrived []arrival, rows int, questions []arrival) []int {
	order := make([]int, len(questions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(questions[a].at, questions[b].at) })
	counts, tree, here := make([]int, len(questions)), make([]int, rows+1), 0
	for _, i := range order {
		for ; here < len(arrived) && arrived[here].at < questions[i].at; here++ {
			for rank := arrived[here].rank; rank <= rows; rank += rank & -rank {
				tree[rank]++
			}
		}
		counts[i] = here
		for rank := questions[i].rank; rank > 0; rank -= rank & -rank {
			counts[i] -= tree[rank]
		}
	}
	return counts
}
