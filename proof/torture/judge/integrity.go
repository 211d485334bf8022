package judge

// checkIntegrity holds contents and names against the table (I9).
func (v *Verdict) checkIntegrity(f *feed) {
	keys := map[int]string{} // dedup keys
	for _, a := range f.attempts {
		if a.rank == 0 {
			continue
		}
		row := f.table.rows[a.rank-1]
		v.compare(f, a.Key, a.rank, row.Position, a.Position, row.Hash, a.Hash, a.Sequence)
		if a.BadSign {
			v.broken("I9", f.Name, "the signature of attempt %d is wrong", a.ID)
		}
		if key, ok := keys[a.rank]; ok && key != a.DedupKey || a.DedupKey == "" {
			v.broken("I9", f.Name, "row %d has the dedup key %q in attempt %d, and had %q", a.rank, a.DedupKey, a.ID, key)
		}
		keys[a.rank] = a.DedupKey
	}
	for _, a := range f.applied {
		if rank := f.table.byKey[a.Key]; rank > 0 {
			row := f.table.rows[rank-1]
			v.compare(f, a.Key, rank, row.Position, a.Position, row.Hash, a.Hash, a.Sequence)
		}
	}
}

func (v *Verdict) compare(f *feed, key string, rank int, position, gotPosition, hash, gotHash string, sequence int64) {
	if gotPosition != position {
		v.broken("I9", f.Name, "row %d (%s) came with position %q, not %q", rank, key, gotPosition, position)
	}
	if gotHash != hash {
		v.broken("I9", f.Name, "row %d (%s) came with other contents", rank, key)
	}
	if sequence != f.segment(sequence).expected(rank) {
		v.broken("I9", f.Name, "row %d (%s) came with sequence %d", rank, key, sequence)
	}
}
