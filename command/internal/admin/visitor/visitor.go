package visitor

import "context"

// Visitor is who sent a request.
type Visitor struct {
	// Name is the name of the login, which the audit gets; "" without a login.
	Name string
	// Read, Operate and Payloads are what the visitor may do: see the fleet, decide, and see headers and payloads.
	Read, Operate, Payloads bool
	// CSRF goes into the field "csrf" of every form, or into the header X-CSRF-Token of every POST.
	CSRF string
	// Session reports that the visitor logged in on the page, and may log out: POST /logout.
	Session bool
	// Logins reports that there is something to log in with: GET /login shows a form, which POSTs the field "token", or
	// "user" and "password", to /login. Passwords reports that there are users with passwords.
	Logins, Passwords bool
	// LoginFailed is why the last attempt to log in failed; "" if none did. The page /login shows it.
	LoginFailed string
	// Ends is closed when the visitor's right to see ends, as when the session does. A stream of events ends then. nil: never.
	Ends <-chan struct{}
}

type key struct{}

// With returns a context that has a visitor.
func With(ctx context.Context, v Visitor) context.Context { return context.WithValue(ctx, key{}, v) }

// Of returns the visitor of a request's context; the zero Visitor if there is none.
func Of(ctx context.Context) Visitor {
	v, _ := ctx.Value(key{}).(Visitor)
	return v
}
