package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func (p *tab) find(by, text string) {
	p.t.Helper()
	p.open("/find")
	p.do(chromedp.SetValue(chromedp.CSS(`select[name="by"]`), by), chromedp.SendKeys(chromedp.CSS(`input[name="value"]`), text))
	p.leave("form.filters button")
}

func TestFind_ShowsWhereARecordIsInEachProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"mail", "orders", ""}, process{"ledger", "orders", ""})
	w.insert("orders", "o-1", "grace", `{"n": 1}`)
	w.eventually(func() bool { return len(w.receiver.bodies(`"n": 1`))+len(w.receiver.bodies(`"n":1`)) == 2 })
	w.command("pause", "ledger", "--reason", "a test")
	w.insert("orders", "o-2", "grace", `{"n": 2}`)
	w.eventually(func() bool { return len(w.receiver.bodies(`"n": 2`))+len(w.receiver.bodies(`"n":2`)) == 1 })
	p := w.ada()

	p.find("id", "o-2")
	p.says("main", "delivered")
	p.says("main", "next")
	p.says("main", "ledger")
	require.Equal(t, w.url+"/find", value[string](p, "location.href"), "what is searched for is in no address")

	p.find("key", "grace")
	require.Equal(t, 4, value[int](p, `document.querySelectorAll("tbody tr").length`))
	p.find("id", "nothing-like-it")
	p.says("main", "No process has a record like that")
}
