package admin_test

import (
	"net/http"
	"testing"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
)

func check(testing.TB, *http.Request, answered) {}

func page(w http.ResponseWriter, r *http.Request) {
	v := visitor.Of(r.Context())
	_, _ = w.Write([]byte(v.Name + "\n" + v.CSRF + "\n" + v.LoginFailed))
}

func live(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}
