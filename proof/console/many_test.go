package console

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// many is how many processes a large fleet has.
const many = 1000

// frames are how long the browser takes for a frame while it scrolls down the page, in milliseconds: the median.
const frames = `new Promise(done => {
	const times = [];
	let last = performance.now(), n = 0;
	const step = now => {
		times.push(now - last);
		last = now;
		scrollBy(0, SPEED);
		if (++n < 60) requestAnimationFrame(step); else done(times.sort((a, b) => a - b)[30]);
	};
	requestAnimationFrame(step);
})`

// keystroke is how long the filter takes for a text, with the layout after it, divided by the time that the browser takes
// to lay out a plain list of as many lines.
const keystroke = `(() => {
	const time = f => { const t = performance.now(); f(); document.body.offsetHeight; return performance.now() - t; };
	const median = f => [0, 1, 2, 3, 4].map(i => time(() => f(i))).sort((a, b) => a - b)[2];
	const list = document.createElement("ol");
	document.body.append(list);
	const plain = median(i => { list.innerHTML = Array.from({length: 1000}, (_, n) => "<li><b>" + i + "</b> line " + n + "</li>").join(""); });
	list.remove();
	const field = document.querySelector("[data-filter]");
	const filter = median(i => { field.value = "tenant0" + i; field.dispatchEvent(new InputEvent("input", {bubbles: true})); });
	field.value = "";
	field.dispatchEvent(new InputEvent("input", {bubbles: true}));
	return filter / plain;
})()`

// A large fleet is as quick as a small one: rows off the screen cost nothing, and a filter hides rows at once. With
// CONSOLE_TIMES it is measured, too, as ratios.
func TestMany_AThousandProcessesWithoutLag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"orders", "orders", ""})
	w.insert("orders", "o-1", "ada", "{}")
	p := w.ada()
	p.open("/")
	p.says("#fleet-table", "orders")

	pgtest.Exec(t, w.pool, fmt.Sprintf(`INSERT INTO public.cursor (process_name) SELECT format('tenant%%s_feed_%%s', to_char(n %% 40, 'FM00'), to_char(n, 'FM0000')) FROM generate_series(1, %d) n`, many-1))
	p.until(`document.querySelectorAll("[data-row]").length === 1000`) // without a load
	p.open("/?sort=name")
	require.Equal(t, many, value[int](p, `document.querySelectorAll("[data-row]").length`))
	p.says("#counts", "1\u202f000")

	drawn := value[int](p, `[...document.querySelectorAll("[data-row] a")].filter(a => a.checkVisibility({contentVisibilityAuto: true})).length`)
	require.Less(t, drawn, 200, "rows off the screen are not laid out")
	if os.Getenv("CONSOLE_TIMES") != "" {
		p.quick()
	}

	p.enter("[data-filter]", "tenant07 0007")
	p.until(`document.querySelectorAll("[data-row]:not([hidden])").length === 1 && document.querySelector("#shown").textContent === "1"`)
	p.open("/?group=prefix&q=tenant")
	require.Equal(t, 40, value[int](p, `document.querySelectorAll("tr.group").length`))
}

// quick measures the page of the large fleet. A busy machine may fail it, so it is for make console-times alone.
func (p *tab) quick() {
	p.t.Helper()
	filtering := best(func() float64 { return value[float64](p, keystroke) })
	scrolling := best(func() float64 { return p.scrolling(400) / p.scrolling(0) })
	loading := best(func() float64 {
		small := p.loading("/?q=orders")
		return p.loading("/?sort=name") / small
	})
	p.t.Logf("1,000 processes: they load in %.1f times the time of one; a keystroke takes %.2f times a plain list; a frame takes %.2f times an idle one", loading, filtering, scrolling)
	require.Less(p.t, filtering, 3.0)
	require.Less(p.t, scrolling, 3.0)
	require.Less(p.t, loading, 20.0)
}

// scrolling is how long a frame takes while the page scrolls by so many pixels in each.
func (p *tab) scrolling(speed int) float64 {
	p.t.Helper()
	return wait[float64](p, fmt.Sprintf("(() => { const SPEED = %d; return %s; })()", speed, frames))
}

// loading is how long a page takes to load until its script is done, in milliseconds.
func (p *tab) loading(path string) float64 {
	p.t.Helper()
	p.open(path)
	return value[float64](p, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
}

// best is the least of some measurements: other tests may have kept the machine busy during one of them.
func best(measure func() float64) float64 {
	return min(measure(), measure(), measure())
}

// Each page that is seen keeps a connection, and a browser opens six to one host. A page that nobody sees gives its own back.
func TestLive_ManyTabsLeaveConnectionsForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"orders", "orders", ""})
	p := w.anonymous()
	p.allow("[object Event]") // htmx notes that a connection has ended
	p.open("/")
	p.until(`document.documentElement.dataset.live === "on"`)
	p.do(chromedp.Evaluate[chromedp.Void](`void Object.defineProperty(document, "hidden", {get: () => window.away, configurable: true})`))
	p.do(chromedp.Evaluate[chromedp.Void](`void (window.away = true, document.dispatchEvent(new Event("visibilitychange")))`))
	p.until(`document.documentElement.dataset.live === undefined`)
	w.receiver.refuse("poison", "no")
	w.insert("orders", "o-1", "ada", `{"note": "poison"}`)
	w.eventually(func() bool {
		return pgtest.Value[bool](t, w.pool, "SELECT EXISTS (SELECT FROM public.cursor WHERE state = 'halted')")
	})
	p.do(chromedp.Evaluate[chromedp.Void](`void (window.away = false, document.dispatchEvent(new Event("visibilitychange")))`))
	p.until(`document.documentElement.dataset.live === "on"`)
	p.says("#fleet-table", "halted")
}
