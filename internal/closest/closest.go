// Package closest finds the name that a misspelt one was meant to be.
package closest

import "strings"

// Name returns the name that a wrong one was probably meant to be; "" if none is close. A third of its letters may
// be wrong, or one, but never all of them.
func Name(wrong string, names []string) string {
	best, fewest := "", min(max(1, len(wrong)/3)+1, len(wrong))
	for _, name := range names {
		if d := distance(strings.ToLower(wrong), strings.ToLower(name)); d < fewest {
			best, fewest = name, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, removed, changed or swapped with the next one to make one text
// from the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) {
		rows[0][j+1] = j + 1
	}
	for i := range len(a) {
		for j := range len(b) {
			change := rows[i][j]
			if a[i] != b[j] {
				change++
			}
			best := min(change, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				best = min(best, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = best
		}
	}
	return rows[len(a)][len(b)]
}
