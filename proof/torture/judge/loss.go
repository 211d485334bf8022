package judge

import "github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"

// transaction is what its producer noted of it.
type transaction struct {
	outcome history.Step
	inserts []history.Write
}

// checkWrites holds the producers' own account against the tables (I1, I2): what was committed is there, what was rolled
// back is not, and of an unknown outcome all rows are there or none.
func (v *Verdict) checkWrites(writes []history.Write, tables map[string]*table) {
	all := map[string]*transaction{}
	for _, w := range writes {
		t := all[w.Tx]
		if t == nil {
			t = &transaction{outcome: history.Unknown}
			all[w.Tx] = t
		}
		switch w.Step {
		case history.Insert:
			t.inserts = append(t.inserts, w)
		case history.Try, history.Prepared:
			t.outcome = history.Unknown
		default:
			t.outcome = w.Step
		}
	}
	accounted := map[string]bool{}
	for tx, t := range all {
		v.checkTransaction(tx, t, tables, accounted)
	}
	for name, table := range tables {
		for _, row := range table.rows {
			if !accounted[row.Key] {
				v.broken("I2", name, "row %s is in the table, and no producer inserted it", row.Key)
			}
		}
	}
}

func (v *Verdict) checkTransaction(tx string, t *transaction, tables map[string]*table, accounted map[string]bool) {
	there := 0
	for _, w := range t.inserts {
		accounted[w.Key] = true
		table := tables[w.Table]
		rank := 0
		if table != nil {
			rank = table.byKey[w.Key]
		}
		switch {
		case rank == 0 && t.outcome == history.Committed:
			v.broken("I1", w.Table, "row %s was committed by transaction %s and is not in the table", w.Key, tx)
		case rank > 0 && t.outcome == history.Aborted:
			v.broken("I2", w.Table, "row %s was rolled back by transaction %s and is in the table", w.Key, tx)
		case rank > 0 && table.rows[rank-1].Hash != w.Hash:
			v.broken("I9", w.Table, "row %s does not have the contents that were inserted", w.Key)
		}
		if rank > 0 {
			there++
		}
	}
	if there > 0 && there < len(t.inserts) {
		v.broken("I2", tx, "%d of the %d rows of one transaction are in the table", there, len(t.inserts))
	}
}

// checkLoss looks for rows that were never acknowledged (I1) and applications of what is no row (I2). What an operator
// passed over is not owed; what is to come again is owed again; a dead letter keeps what was put aside.
func (v *Verdict) checkLoss(f *feed) {
	delivered := map[*segment]map[int]bool{}
	for _, s := range f.segments {
		delivered[s] = map[int]bool{}
	}
	for _, a := range f.attempts {
		if a.rank == 0 {
			v.broken("I2", f.Name, "%s was received, and is not in the table", a.Key)
		} else if a.applied > 0 && a.acknowledged() {
			delivered[f.segment(a.Sequence)][a.rank] = true
		}
	}
	for _, a := range f.applied {
		if rank := f.table.byKey[a.Key]; rank > 0 {
			delivered[f.segment(a.Sequence)][rank] = true
		} else {
			v.broken("I2", f.Name, "%s was applied, and is not in the table", a.Key)
		}
	}
	owed := make([]bool, len(f.table.rows)+1)
	for _, s := range f.segments {
		for rank := s.after + 1; rank <= s.end; rank++ {
			owed[rank] = true
			v.Records++
			if delivered[s][rank] {
				v.Delivered++
				continue
			}
			if f.aside[s][rank] != nil {
				continue
			}
			v.Lost++
			v.broken("I1", f.Name, "row %d (%s) was never applied and acknowledged", rank, f.table.rows[rank-1].Key)
		}
	}
	for _, is := range owed[1:] {
		if !is {
			v.PassedOver++
		}
	}
}
