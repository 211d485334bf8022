package console

import (
	"fmt"
	"testing"
)

func TestFleet_ShowsEveryProcessAndWhatNeedsSomebody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"orders", "orders", ""}, process{"payments", "payments", ""})
	w.receiver.refuse("-5", "the amount is negative")
	w.insert("orders", "o-1", "ada", `{"amount": 3}`)
	w.insert("payments", "p-1", "barbara", `{"amount": -5}`)
	p := w.anonymous()
	p.open("/")
	p.says("#needs", "payments")
	p.says("#needs", "halted")
	p.says("#fleet-table", "orders")
	p.says(".me", "read only")
	p.until(`document.documentElement.dataset.live === "on"`)
}

func TestFleet_ARowChangesWithoutALoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"orders", "orders", ""})
	p := w.anonymous()
	p.open("/")
	p.says("#fleet-table", "running")
	p.do(mark)
	w.receiver.refuse("poison", "no")
	for i := range 3 {
		w.insert("orders", fmt.Sprint("o-", i), "ada", `{"note": "poison"}`)
	}
	p.says("#fleet-table", "halted")
	p.says("#needs", "orders")
	p.says("#counts", "halted")
	p.until(`document.documentElement.hasAttribute("data-old")`)
}
