// Package quantity writes numbers of things for people.
package quantity

import (
	"fmt"
	"strings"
)

// Of returns a number with its noun: "1 record", "2 records", "2 processes".
func Of[N int | int64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}
