package yamlfile

import "strings"

// Closest returns the name that a wrong one was probably meant to be; "" if none is close. A third of its letters may
// be wrong, or one, but never all of them.
func Closest(wrong string, names []string) string {
	best, fewest := "", min(max(1, len(wrong)/3)+1, len(wrong))
	for _, name := range names {
		if d := distance(strings.ToLower(wrong), strings.ToLower(name)); d < fewest {
			best, fewest = name, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, removed or changed to make one text from the other.
func distance(a, b string) int {
	before := make([]int, len(b)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := before[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, before[j+1]+1, row[j]+1)
		}
		before = row
	}
	return before[len(b)]
}
