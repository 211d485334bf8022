package screen

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Findings prints a block for each finding of the doctor, and a last line with their number. The SQL of a fix is not
// folded.
func (p Page) Findings(findings []daemon.Finding) error {
	var b strings.Builder
	counts := map[daemon.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
		where := visible.Line(f.Process)
		if where == "" {
			where = "database"
		}
		head := fmt.Sprintf("%s: %s: ", where, f.Severity)
		problem := fold.Text(head+visible.Indented(f.Problem), p.Width, under+under)
		problem = strings.TrimPrefix(problem, head)
		b.WriteString(p.Paint(Bold, where) + ": " + p.Paint(severityColour(f.Severity), fmt.Sprint(f.Severity)) + ": " + problem + "\n")
		if f.Fix != "" {
			b.WriteString(p.fix(visible.Text(f.Fix)))
		}
	}
	fmt.Fprintf(&b, "%s, %s, %s\n", quantity.Of(counts[daemon.Refuse], "error"), quantity.Of(counts[daemon.Warn], "warning"), quantity.Of(counts[daemon.Note], "note"))
	return p.print(b.String())
}

// fix returns the lines of a fix, which may be SQL or a command.
func (p Page) fix(text string) string {
	const first, next = "    fix: ", "          "
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		before := next
		if i == 0 {
			before = first
		}
		if fold.SQL(line) || strings.HasPrefix(line, "--") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "ordered-dispatcher ") {
			b.WriteString(before + line + "\n")
			continue
		}
		body := line
		if p.Width > len(next) {
			body = strings.ReplaceAll(fold.Text(line, p.Width-len(before), ""), "\n", "\n"+next)
		}
		b.WriteString(before + body + "\n")
	}
	return b.String()
}

func severityColour(s daemon.Severity) string {
	switch s {
	case daemon.Refuse:
		return Red
	case daemon.Warn:
		return Yellow
	default:
		return Cyan
	}
}
