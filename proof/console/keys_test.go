package console

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/stretchr/testify/require"
)

func TestKeys_LeadThroughThePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"alpha", "orders", ""}, process{"beta", "orders", ""}, process{"gamma_one", "orders", ""})
	p := w.ada()
	p.open("/?sort=name")
	p.until(`document.querySelectorAll("[data-row]").length === 3`)
	press := func(keys string) {
		for _, key := range keys {
			p.stroke(string(key), string(key))
		}
	}
	at := func() string { return value[string](p, `document.activeElement.innerText`) }

	press("j")
	require.Equal(t, "alpha", at())
	press("jj")
	require.Equal(t, "gamma_one", at())
	press("k")
	require.Equal(t, "beta", at())

	press("/")
	p.until(`document.activeElement.matches("[data-filter]")`)
	press("gam")
	p.until(`document.querySelectorAll("[data-row]:not([hidden])").length === 1`)
	p.stroke("Escape", "")
	p.until(`!document.activeElement.matches("[data-filter]")`)

	press("?")
	p.until(`document.querySelector("#keys").open`)
	p.stroke("Escape", "")
	p.until(`!document.querySelector("#keys").open`)

	before := value[string](p, `getComputedStyle(document.body).backgroundColor`)
	press("t")
	require.NotEqual(t, before, value[string](p, `getComputedStyle(document.body).backgroundColor`))
	p.open("/?sort=name")
	require.NotEqual(t, before, value[string](p, `getComputedStyle(document.body).backgroundColor`), "the look is remembered")

	press("gd")
	p.until(`location.pathname === "/doctor"`)
	p.open("/?sort=name")
	press("j")
	p.stroke("Enter", "\r")
	p.until(`location.pathname === "/processes/alpha" && document.documentElement.hasAttribute("data-ready")`)
	press("p")
	p.says("#decision", "Pause alpha?")
	p.until(`document.activeElement.id === "reason"`)
}

// stroke presses a key and lets it go, as a keyboard does: the text comes only if no script has taken the key.
func (p *tab) stroke(key, text string) {
	p.t.Helper()
	code := map[string]int64{"Escape": 27, "Enter": 13}[key]
	p.do(command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: text, WindowsVirtualKeyCode: code}),
		command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key, WindowsVirtualKeyCode: code}))
}
