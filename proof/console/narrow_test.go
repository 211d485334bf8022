package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// cramped returns what cannot be read in a narrow window: cells of less than ten letters whose text is longer, rows that
// are very high, what is cut at the right edge, and a page that scrolls sideways. A table may scroll in its own box.
const cramped = `(() => {
	const faults = new Set(), root = document.documentElement;
	if (root.scrollWidth > innerWidth) faults.add("the page is " + root.scrollWidth + " wide");
	const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
	for (const e of document.body.querySelectorAll("*")) {
		if (e.closest(".only-heard, .skip-link, svg, option, dialog, .uplot") || !e.checkVisibility() || scrolls(e)) continue;
		const box = e.getBoundingClientRect();
		if (box.width > 0 && box.right > innerWidth + 1) faults.add("cut: " + e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 30));
	}
	const probe = document.createElement("span");
	for (const cell of document.querySelectorAll(".table td, .fleet td, .fleet tbody th")) {
		if (!cell.checkVisibility() || cell.querySelector("svg")) continue;
		const longest = Math.max(...cell.innerText.split("\n").map(line => line.trim().length)), style = getComputedStyle(cell);
		probe.textContent = "0".repeat(Math.min(10, longest));
		cell.append(probe);
		const needed = probe.getBoundingClientRect().width * .8; // letters are narrower than digits
		probe.remove();
		const has = cell.getBoundingClientRect().width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
		if (has < needed) faults.add("a cell of " + Math.round(has) + " px: " + cell.innerText.slice(0, 30));
	}
	for (const row of document.querySelectorAll(".table tbody tr, .fleet tbody tr")) {
		const height = row.getBoundingClientRect().height;
		if (height > 240) faults.add("a row of " + Math.round(height) + " px: " + row.innerText.slice(0, 30));
	}
	return [...faults];
})()`

func TestPages_CanBeReadInANarrowWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", "    on_poison: dead_letter\n"}, process{"warehouse_orders_of_the_north", "stock", ""})
	w.receiver.refuse("negative", "the amount is negative, and the receiver says so in many words: "+strings.Repeat("look at the order ", 5))
	for i := range 3 {
		w.insert("payments", fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a80%02d", i), "ada.lovelace@example.com", `{"why": "negative"}`)
		w.insert("stock", fmt.Sprintf("order-%d", i), "ada.lovelace@example.com", `{}`)
	}
	w.eventually(func() bool {
		return pgtest.Value[int](t, w.pool, "SELECT count(*)::int FROM public.dead_letter") == 3
	})
	w.insert("stock", "order-4", "ada.lovelace@example.com", `{"why": "negative"}`)
	w.command("pause", "payments", "--actor", "nightly-report@warehouse.example.com", "--reason", "the warehouse counts its stock until ten, and nobody may book anything before that is over")
	p := w.ada()
	p.open("/processes/warehouse_orders_of_the_north")
	p.says("#standing", "halted")
	p.open("/processes/payments")
	p.says("#standing", "paused")
	for _, width := range []int64{700, 400} {
		p.do(chromedp.EmulateViewport(width, 900))
		see := func(name string) {
			p.keep(fmt.Sprintf("narrow-%s-%d", name, width))
			assert.Empty(t, value[[]string](p, cramped), "%s at %d", name, width)
		}
		for _, page := range append(everyPage[:len(everyPage):len(everyPage)], struct{ name, path string }{"halted", "/processes/warehouse_orders_of_the_north"}) {
			p.open(page.path)
			see(page.name)
		}
		p.press("skip")
		see("preview")
		p.find("key", "ada.lovelace@example.com")
		see("found")
	}
}
