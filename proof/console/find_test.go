package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func (p *tab) find(by, text string) {
	p.t.Helper()
	p.open("/find")
	p.do(chromedp.SetValue(chromedp.CSS(`select[name="by"]`), by))
	p.enter(`input[name="value"]`, text)
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

func TestFind_ByTheDedupKeyThatTheHeadShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"mail", "orders", ""}, process{"ledger", "orders", ""})
	w.command("pause", "ledger", "--reason", "a test")
	w.insert("orders", "o-1", "grace", `{"n": "n1"}`)
	w.insert("orders", "o-2", "grace", `{"n": "n2"}`)
	w.eventually(func() bool { return len(w.receiver.bodies("n2")) == 1 })
	p := w.ada()
	p.open("/processes/ledger")
	p.says("#head", "o-1")
	key := value[string](p, `[...document.querySelectorAll("#head dt")].find(e => e.textContent === "dedup key").nextElementSibling.innerText`)

	p.find("dedup_key", key)
	require.Equal(t, []string{"ledger", "mail"}, value[[]string](p, `[...document.querySelectorAll("tbody tr")].map(row => row.cells[0].innerText).sort()`))
	require.Equal(t, []string{"o-1", "o-1"}, value[[]string](p, `[...document.querySelectorAll("tbody tr")].map(row => row.cells[2].innerText.split("\n")[0])`))
	p.says("main", "delivered")
	p.says("main", "next")
	p.find("dedup_key", key+"1")
	p.says("main", "No process has a record like that")
}
