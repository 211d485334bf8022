package console

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type doctorPage struct {
	frame
	Summary, None string
	Groups        []findings
}

// findings are those of one process, or of the database.
type findings struct {
	Title, Count string
	Findings     []finding
}

type finding struct {
	ID        string
	State     standing
	Text, Fix []words
	SQL       string
}

func (c *Console) doctor(w http.ResponseWriter, r *http.Request) {
	report, err := c.desk.Doctor(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	page := doctorPage{frame: c.frame(r, "Doctor", "doctor"), Summary: summaryOf(report), None: "Nothing to do: the file and the database agree."}
	at := map[string]int{}
	for i, f := range report.Findings {
		n, seen := at[f.Process]
		if !seen {
			n = len(page.Groups)
			at[f.Process] = n
			title := "The database"
			if f.Process != "" {
				title = visible.Inline(visible.Cut(f.Process))
			}
			page.Groups = append(page.Groups, findings{Title: title})
		}
		g := &page.Groups[n]
		g.Findings = append(g.Findings, newFinding(i, f))
		g.Count = counted(int64(len(g.Findings)), "finding", "findings")
	}
	c.show(w, http.StatusOK, "doctor", page)
}

// command matches a fix that is SQL.
var command = regexp.MustCompile(`^(--|ALTER|ANALYZE|BEGIN|COMMENT|CREATE|DELETE|DROP|GRANT|INSERT|REINDEX|REVOKE|SELECT|SET|UPDATE|VACUUM)\b`)

func newFinding(i int, f desk.Finding) finding {
	out := finding{ID: "sql-" + strconv.Itoa(i), State: newStanding(f.Severity), Text: newProse(f.Problem)}
	fix := visible.Text(strings.TrimSpace(f.Fix))
	if command.MatchString(fix) {
		out.SQL = fix
	} else {
		before, sql := nextStep(fix)
		out.Fix, out.SQL = newProse(before), sql
	}
	return out
}

func summaryOf(report desk.Report) string {
	numbers := map[string]int64{}
	for _, f := range report.Findings {
		numbers[f.Severity]++
	}
	return strings.Join([]string{
		counted(numbers["error"], "error", "errors"), counted(numbers["warning"], "warning", "warnings"), counted(numbers["note"], "note", "notes"),
		"looked at " + newMoment(report.At).Text + " UTC",
	}, " · ")
}
