package console

import (
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// everyPage are the addresses of all pages, of a world with a process payments and a dead letter 1.
var everyPage = []struct{ name, path string }{
	{"fleet", "/"}, {"grouped", "/?group=prefix&sort=age"}, {"process", "/processes/payments"}, {"find", "/find"},
	{"letters", "/letters?all=yes"}, {"letter", "/letters/1"}, {"audit", "/audit"}, {"doctor", "/doctor"}, {"login", "/login"},
}

// contrast returns the texts of a page whose contrast with what is behind them is too low for WCAG AA.
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const rgb = text => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
	const light = c => { const [r, g, b] = [0, 1, 2].map(i => { const v = c[i] / 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
	const low = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility({visibilityProperty: true}) || e.closest(".only-heard, .skip-link, svg, option")) continue;
		const s = getComputedStyle(e), size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.6 && parseInt(s.fontWeight) >= 700;
		const a = light(rgb(s.color)), b = light(behind(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < (large ? 3 : 4.5)) low.add(ratio.toFixed(2) + " " + e.className + ": " + walk.currentNode.data.trim().slice(0, 40));
	}
	return [...low];
})()`

// landmarks returns what a screen reader would miss in a page.
const landmarks = `(() => {
	const faults = [];
	for (const [selector, number] of [["h1", 1], ["main", 1], ["header.top", 1], ["title", 1]]) {
		if (document.querySelectorAll(selector).length !== number) faults.push(selector + ": " + document.querySelectorAll(selector).length);
	}
	if (!document.documentElement.lang) faults.push("no language");
	for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
		if (!e.getAttribute("aria-label") && !(e.labels && e.labels.length)) faults.push("no label: " + e.outerHTML);
	}
	for (const e of document.querySelectorAll("button, a[href]")) {
		if (!e.textContent.trim() && !e.getAttribute("aria-label")) faults.push("no name: " + e.outerHTML);
	}
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	for (const id of new Set(ids)) if (ids.filter(other => other === id).length > 1) faults.push("id twice: " + id);
	if (document.querySelector("[style]:not([class^='u-'], [class^='u-'] *, .uplot, .uplot *)")) faults.push("a style attribute");
	return faults;
})()`

func TestPages_LoadCleanlyAndCanBeReadByEverybody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", "    on_poison: dead_letter\n"}, process{"payments_mail", "payments", ""})
	w.receiver.refuse("negative", "the amount is negative")
	w.insert("payments", "p-1", "ada", `{"why": "negative"}`)
	w.insert("payments", "p-2", "ada", `{"why": "fine"}`)
	p := w.ada()
	for _, name := range []string{"payments", "payments_mail"} {
		p.open("/processes/" + name)
		p.says("#facts", "1")
	}
	p.open("/")
	p.says("#fleet-table", "halted") // payments_mail
	for _, page := range everyPage {
		p.open(page.path)
		require.NotEmpty(t, value[string](p, "document.title"), page.path)
		require.Empty(t, value[[]string](p, landmarks), page.path)
		for _, shade := range shades {
			p.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: shade}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
			require.Empty(t, value[[]string](p, contrast), "%s in %s", page.path, shade)
		}
	}
}

// Reading needs no script: rows, heads and findings are there, and so is a preview and its form.
func TestPages_WorkWithoutScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	w.receiver.refuse("-5", "the amount is negative")
	w.insert("payments", "p-1", "barbara", `{"amount": -5}`)
	p := w.ada()
	p.open("/")
	p.says("#fleet-table", "halted")
	p.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	p.dumb = true
	text := func(path string) string {
		p.do(chromedp.Navigate(p.base + path))
		return p.text("main")
	}
	require.Contains(t, text("/"), "payments")
	require.Contains(t, text("/"), "halted")
	require.Contains(t, text("/processes/payments"), "the amount is negative")
	require.Contains(t, text("/audit"), "halt")
	require.Contains(t, text("/doctor"), "note")
	p.do(chromedp.Navigate(p.base + "/processes/payments"))
	p.click(`button[aria-label="Preview of retry"]`)
	p.do(chromedp.WaitVisible(chromedp.CSS("#reason")))
	w.receiver.accept("-5")
	p.enter("#reason", "no script")
	p.click("#decision form button")
	w.eventually(func() bool { return len(w.receiver.bodies("-5")) == 1 })
}

func TestDoctor_TheSQLOfAFindingIsCopied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	pgtest.Exec(t, w.pool, "DROP INDEX public.payments_order")
	p := w.ada()
	p.open("/doctor")
	p.says("main", "CREATE INDEX CONCURRENTLY")
	p.do(chromedp.Evaluate[chromedp.Void](`void Object.defineProperty(navigator, "clipboard", {configurable: true, value: {writeText: async text => { window.copied = text; }}})`))
	p.click("[data-copy]")
	p.until(`window.copied?.startsWith("CREATE INDEX CONCURRENTLY")`)
	p.do(chromedp.Evaluate[chromedp.Void](`void Object.defineProperty(navigator, "clipboard", {value: undefined})`))
	p.click("[data-copy]")
	p.until(`String(getSelection()).startsWith("CREATE INDEX CONCURRENTLY")`)
}

// One delivery between looks without one has no line, and a process that delivers nothing has none either.
func TestProcess_OneDeliveryIsAPointOfTheLatency(t *testing.T) {
	t.Parallel()
	const inked = `(() => {
		const plot = document.querySelector('[data-plot="latency"]'), canvas = plot.querySelector("canvas");
		if (!canvas) return -1;
		const ink = getComputedStyle(plot).color.match(/\d+/g).map(Number);
		const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		let n = 0;
		for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && [0, 1, 2].every(c => Math.abs(data[i + c] - ink[c]) < 12)) n++;
		return n;
	})()`
	w := newWorld(t, process{"payments", "payments", ""})
	p := w.ada()
	p.open("/processes/payments")
	p.allow("willReadFrequently")
	p.says("#latency", "no delivery was seen")
	p.until(inked + " === 0")
	w.insert("payments", "p-1", "ada", "{}")
	p.until(inked + " > 4")
	p.says("#latency", "the latest took under 1 s")
	p.open("/processes/payments")
	series := value[[]*float64](p, `JSON.parse(document.querySelector("#series").textContent).latency`)
	require.Len(t, slices.DeleteFunc(series, func(v *float64) bool { return v == nil }), 1)
}
