package screen

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Dash returns the text for a cell of a table: a dash if it is empty.
func Dash(text string) string {
	if text = visible.Line(text); text == "" {
		return "-"
	}
	return text
}

// Age writes a duration in at most six characters: 350ms, 42s, 3m5s, 26h3m, 12d.
func Age(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 100*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%dd", int64(d.Hours()/24))
	}
}

// Rate writes records in a second in at most six characters: 0, 0.2/s, 35/s, 1.2k/s.
func Rate(perSecond float64) string {
	switch {
	case perSecond <= 0 || math.IsNaN(perSecond):
		return "0"
	case perSecond < 9.95:
		return fmt.Sprintf("%.1f/s", max(perSecond, 0.1))
	case perSecond < 999.5:
		return fmt.Sprintf("%.0f/s", perSecond)
	case perSecond < 9_950:
		return fmt.Sprintf("%.1fk/s", perSecond/1000)
	default:
		return fmt.Sprintf("%.0fk/s", perSecond/1000)
	}
}
