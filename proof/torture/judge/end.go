package judge

// maxFiles is more than a worker with sixteen processes needs: two connections for each to the database, one to the
// receiver, and what the runtime has open.
const maxFiles = 100

// checkEnd: soon after the last fault all is delivered (I11), and status tells the truth about it (I12).
func (v *Verdict) checkEnd(f *feed) {
	e := f.end
	if e == nil {
		v.broken("I11", f.Name, "nobody looked how it ended")
		return
	}
	if e.Files > maxFiles {
		v.broken("I11", f.Name, "a worker has %d files open, more than %d", e.Files, maxFiles)
	}
	rows := len(f.table.rows)
	if f.table.place(e.Cursor.Position) != rows || !f.stands(e.Cursor) || e.Cursor.State != running {
		v.broken("I11", f.Name, "%v after the last fault it is %s at row %d of %d: %s",
			e.Waited, e.Cursor.State, f.table.place(e.Cursor.Position), rows, e.Problem)
	}
	if e.Stood > e.Patience {
		v.broken("I11", f.Name, "it stood still for %v after the last fault, more than %v", e.Stood, e.Patience)
	}
	v.Slowest = max(v.Slowest, e.Waited)
	if e.Sessions > e.Allowed {
		v.broken("I11", f.Name, "the workers have %d sessions, more than %d", e.Sessions, e.Allowed)
	}
	if want := f.segments[len(f.segments)-1].expected(rows); e.Status.Sequence != want || e.Lag != 0 {
		v.broken("I12", f.Name, "status counts %d records and a lag of %d, and not %d and 0", e.Status.Sequence, e.Lag, want)
	}
	if e.Status != e.Cursor {
		v.broken("I12", f.Name, "status says %+v, and the row %+v", e.Status, e.Cursor)
	}
}
