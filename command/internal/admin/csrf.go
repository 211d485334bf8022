package admin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"net/http"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
)

// visitCookie binds the token of a page to the browser of a visitor without a session.
const visitCookie = "od-visit"

// csrf makes the tokens that show that a POST comes from a page which the visitor got.
type csrf struct{ key [32]byte }

// token is the one of a binding.
func (c csrf) token(binding string) string {
	mac := hmac.New(sha256.New, c.key[:])
	mac.Write([]byte(binding)) // never fails: see hash.Hash
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// binding is what a visitor's token belongs to: the session, or else a cookie beside the name. A browser without
// that cookie gets one with a page.
func (g *gate) binding(w http.ResponseWriter, r *http.Request, l login) string {
	if l.session != nil {
		return "session " + hex.EncodeToString(l.session.digest[:])
	}
	for _, name := range []string{hostPrefix + visitCookie, visitCookie} {
		if cookie, err := r.Cookie(name); err == nil && len(cookie.Value) >= visitLength {
			return "visit " + cookie.Value + " " + l.name
		}
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: see crypto/rand
	text := base64.RawURLEncoding.EncodeToString(secret[:])
	if r.Method == http.MethodGet && !isAPI(r) && (r.URL.Path == "/login" || !isOpen(r)) {
		http.SetCookie(w, g.cookie(r, visitCookie, text, defaultSession))
	}
	return "visit " + text + " " + l.name
}

const visitLength = 43 // of 32 bytes in base64

// sincere reports whether a POST comes from a page of ours, or from a program. Otherwise it has answered.
func (g *gate) sincere(w http.ResponseWriter, r *http.Request, l login, v visitor.Visitor) bool {
	if !g.rightType(r) {
		g.refuse(w, r, http.StatusUnsupportedMediaType, kindUsage, "send application/json to the API, and the fields of a form to a page")
		return false
	}
	if g.cross.Check(r) != nil {
		g.refuse(w, r, http.StatusForbidden, kindForbidden, "another site must not send this")
		return false
	}
	if l.by == byToken {
		return true // no browser sends a token by itself
	}
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if !browser && isAPI(r) && l.by != bySession {
		return true // a program: every browser names the origin of a POST
	}
	if !browser {
		g.refuse(w, r, http.StatusForbidden, kindForbidden, "the browser does not say which page sends this")
		return false
	}
	given := r.Header.Get("X-Csrf-Token")
	if !isAPI(r) {
		if err := r.ParseForm(); err != nil {
			g.refuse(w, r, http.StatusBadRequest, kindUsage, "the form cannot be read, or is too large")
			return false
		}
		if given == "" {
			given = r.PostForm.Get("csrf")
		}
	}
	if !hmac.Equal([]byte(given), []byte(v.CSRF)) {
		g.refuse(w, r, http.StatusForbidden, kindForbidden, "the page is too old: load it again")
		return false
	}
	return true
}

// rightType reports whether the body has the type of its route. A form of another site cannot send JSON.
func (g *gate) rightType(r *http.Request) bool {
	given, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if isAPI(r) {
		return err == nil && given == "application/json"
	}
	return err == nil && given == "application/x-www-form-urlencoded" || r.ContentLength == 0
}
