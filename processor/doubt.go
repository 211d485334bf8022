package processor

import "github.com/ordered-dispatcher/ordered-dispatcher/cursor"

// doubt counts the first records after a position whose outcome is unknown: an earlier call may have handed
// them over. Any move of the cursor ends the doubt, except an advance past some of them.
type doubt struct {
	after   cursor.Position
	records int
}

// at is how many records after a position are in doubt.
func (d doubt) at(position cursor.Position) int {
	if d.after != position {
		return 0
	}
	return d.records
}

// past is the rest of the doubt after the cursor has moved over n records.
func (d doubt) past(from, to cursor.Position, n int) doubt {
	if d.after != from || d.records <= n {
		return doubt{}
	}
	return doubt{to, d.records - n}
}
