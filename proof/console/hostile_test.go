package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// hostile is a text that would run a script if a page took it for markup, and that would turn the line around.
const hostile = `"'><img src=x onerror="window.hacked=1"></script></template><script>window.hacked=1</script>{{.}}` + "\u202e"

// What others wrote is text wherever it is shown: names, ids, keys, types, payloads, errors, reasons.
func TestHostile_NothingThatOthersWroteIsMarkup(t *testing.T) {
	t.Parallel()
	name := `od<img src=x onerror=window.hacked=1>`
	w := newWorld(t, process{name, "payments", ""}, process{"aside", "payments", "    on_poison: dead_letter\n"})
	w.receiver.refuse("onerror", hostile)
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.TrimSuffix(hostile, "\u202e"))
	pgtest.Exec(t, w.pool, "INSERT INTO public.payments (id, customer, kind, payload) VALUES ($1, $2, $3, $4)", hostile, hostile, hostile, fmt.Sprintf(`{"note": "%s"}`, quoted))
	p := w.ada()
	p.open("/")
	p.says("#needs", name)
	for _, path := range []string{"/", "/?group=prefix", "/processes/" + url.PathEscape(name), "/processes/aside", "/letters", "/letters/1", "/audit", "/doctor", "/audit?by=" + url.QueryEscape(hostile), "/?q=" + url.QueryEscape(hostile)} {
		p.open(path)
		p.clean(path)
	}
	p.open("/processes/" + url.PathEscape(name))
	p.until(`document.documentElement.dataset.live === "on"`)
	p.says("#head", "onerror=")
	p.says("#head", `\u202e`)
	p.press("skip")
	p.approve(hostile[:60])
	p.says("#history", "onerror=")
	p.clean("history")
	p.open("/find")
	p.do(chromedp.SetValue(chromedp.CSS(`input[name="value"]`), hostile))
	p.leave("form.filters button")
	p.says("main", "aside")
	p.clean("find")
}

// clean fails the test if a text has become markup.
func (p *tab) clean(where string) {
	p.t.Helper()
	require.True(p.t, value[bool](p, `window.hacked === undefined`), where)
	require.Zero(p.t, value[int](p, `document.querySelectorAll("img, main script").length`), where)
	require.False(p.t, value[bool](p, `document.querySelector("main").innerText.includes("\u202e")`), where)
}
