package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogin_AWrongTokenIsRefusedAndALogoutEndsTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"orders", "orders", ""})
	p := newTab(t, w.url)
	p.allow("401")
	p.allow("[object Event]") // htmx notes that the stream of the session has ended
	p.open("/login")
	p.enter("#token", "not-a-token")
	p.leave("form:has(#token) button")
	p.says("main", "not known")
	p.logIn(operateToken)
	p.says(".me", "ada")
	require.NotContains(t, value[string](p, "document.cookie"), "od", "no script sees the session")
	p.leave(".me form button")
	p.open("/processes/orders")
	p.says("#actions", "You may look and not decide")
}

func TestFault_HasTheLookOfThePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"orders", "orders", ""})
	p := w.ada()
	p.allow("404")
	for _, path := range []string{"/nothing", "/processes/nothing", "/letters/7777"} {
		p.open(path)
		p.says("main", "Not found")
		p.until(`document.querySelector(".top nav a") !== null`)
	}
	p.allow("403")
	p.open("/processes/orders")
	refused := wait[string](p, `fetch("/processes/orders/preview", {method: "POST", body: new URLSearchParams({verb: "pause"})}).then(r => r.text())`)
	require.Contains(t, refused, `<h1>Refused</h1>`, "a form without the token of its page")
}
