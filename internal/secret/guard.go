package secret

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Hidden stands in for the words of a receiver.
const Hidden = "[…]"

// Guard is what errors of a sink go through on their way out.
type Guard struct {
	Secrets Set
	// Said is asked of each error of a chain by itself, whether its own text quotes a
	// receiver, and returns that text without the receiver's words. nil: none does.
	Said func(error) (hidden string, ok bool)
	// Hide keeps out what Said finds. Otherwise it is quoted as a part of a line.
	Hide bool
}

// Error is an error without secrets, and without the receiver's words if those are
// not to be quoted. Error(nil) is nil.
func (g Guard) Error(err error) error {
	switch {
	case err == nil:
		return nil
	case g.Said == nil:
		return g.Secrets.Error(err)
	}
	if text := g.Secrets.Replace(g.text(err)); text != err.Error() {
		return &maskedError{text, err}
	}
	return err
}

// text is that of an error, in which the texts of what it wraps are replaced where they
// are. A word of a receiver that is one of ours, too, is hidden only where the receiver
// said it.
func (g Guard) text(err error) string {
	if masked, ok := err.(*maskedError); ok {
		return masked.text
	}
	if hidden, ok := g.said(err); ok && g.Hide {
		return hidden
	} else if ok {
		return visible.Line(g.Secrets.Replace(err.Error()))
	}
	text, places := err.Error(), []place{}
	for _, cause := range causes(err) {
		if p := (place{cause.Error(), g.text(cause)}); p.was != p.now {
			places = append(places, p)
		}
	}
	return fill(text, places)
}

func (g Guard) said(err error) (string, bool) {
	if hidden, ok := g.Said(err); ok {
		return hidden, true
	}
	return saidOnTheWay(err)
}

// saidOnTheWay hides what packages of Go quote of a certificate or of an answer.
func saidOnTheWay(err error) (string, bool) {
	switch e := err.(type) { // each error of a chain is asked by itself
	case x509.HostnameError:
		return fmt.Sprintf("x509: the certificate is not for %s", e.Host), true
	case x509.UnknownAuthorityError:
		return "x509: certificate signed by unknown authority", true
	case x509.CertificateInvalidError:
		return fmt.Sprintf("x509: the certificate is invalid (reason %d)", e.Reason), true
	case *json.SyntaxError, *json.UnmarshalTypeError:
		return "the answer is not the JSON that was expected", true
	case *strconv.NumError:
		return "the answer has a number that cannot be read", true
	default:
		return "", false
	}
}

// causes are what an error wraps, or has the text of.
func causes(err error) []error {
	switch e := err.(type) { // each error of a chain is asked by itself
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return []error{cause}
		}
	case interface{ Quoted() error }:
		return []error{e.Quoted()}
	}
	return nil
}

// place is a part of a text that is to be another one.
type place struct{ was, now string }

// fill replaces the places of a text, which are in its order. A text that does not have
// one of them is hidden whole: it may have words of it.
func fill(text string, places []place) string {
	var ours []string // what is between the places
	for _, p := range places {
		before, after, found := strings.Cut(text, p.was)
		if !found { // pgconn indents the errors of several hosts
			before, after, found = strings.Cut(text, strings.ReplaceAll(p.was, "\n", "\n\t"))
		}
		if !found {
			return Hidden
		}
		ours, text = append(ours, before), after
	}
	var b strings.Builder
	for i, own := range append(ours, text) {
		for _, p := range places { // as where an error has its cause twice
			own = strings.ReplaceAll(own, p.was, p.now)
		}
		b.WriteString(own)
		if i < len(places) {
			b.WriteString(places[i].now)
		}
	}
	return b.String()
}
