package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// choose chooses a value of a menu that loads the page anew.
func (p *tab) choose(menu, value string) {
	p.t.Helper()
	p.do(mark)
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const menu = document.querySelector('select[name="%s"]'); menu.value = %q; menu.dispatchEvent(new Event("change", {bubbles: true})); })()`, menu, value)))
	p.do(chromedp.WaitReady(chromedp.CSS("html[data-ready]:not([data-old])")))
}

// column is what the rows of a table have in one column, each value once.
func (p *tab) column(n int) []string {
	p.t.Helper()
	return value[[]string](p, fmt.Sprintf(`[...new Set([...document.querySelectorAll("tbody tr")].map(row => row.cells[%d].innerText.split("\n")[0]))].sort()`, n))
}

func TestAudit_IsFilteredByProcessByWhomAndByDecisions(t *testing.T) {
	t.Parallel()
	const ofProcess, action, by = 1, 2, 3
	w := newWorld(t, process{"payments", "payments", ""}, process{"mail", "payments", ""})
	p := w.ada()
	p.open("/processes/mail")
	p.press("pause")
	p.approve("stocktaking")
	w.command("pause", "payments", "--actor", "nightly", "--reason", "a test")
	p.open("/audit")
	require.Equal(t, []string{"mail", "payments"}, p.column(ofProcess))
	require.Contains(t, p.column(action), "create")

	p.choose("process", "mail")
	require.Equal(t, []string{"mail"}, p.column(ofProcess))
	require.Contains(t, p.column(action), "create")
	p.choose("by", "ada")
	require.Equal(t, []string{"mail"}, p.column(ofProcess))
	require.Equal(t, []string{"ada"}, p.column(by))
	p.choose("by", "nightly")
	p.says("main", "Nothing like that was done")
	p.choose("process", "")
	require.Equal(t, []string{"payments"}, p.column(ofProcess))
	p.choose("by", "")
	p.leave(`input[name="decisions"]`)
	require.Equal(t, []string{"pause"}, p.column(action))
	require.Equal(t, []string{"ada", "nightly"}, p.column(by))
	require.Equal(t, "?process=&by=&decisions=yes", value[string](p, "location.search"))
}
