package secret

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Hidden replaces the words of a receiver.
const Hidden = "[…]"

// Guard cleans the errors of a sink on their way out.
type Guard struct {
	Secrets Set
	// Said is called with each error of a chain by itself. If the error's own text quotes a receiver, Said returns
	// that text without the receiver's words, and true. nil: no error quotes one.
	Said func(error) (hidden string, ok bool)
	// Hide removes the text that Said finds. Otherwise that text is quoted as a part of a line.
	Hide bool
	// Redact takes the records of the call out of a receiver's words. nil: there are none. An error with a method Whole()
	// keeps them: it is a command to be pasted, which our own code made of names that were asked for.
	Redact func(words string) string
}

// Of returns the guard of a call that has records. redact takes them out of a text (processor.Redact).
func (g Guard) Of(redact func(words string) string) Guard {
	g.Redact = redact
	return g
}

// Error returns an error without secrets, and without the receiver's words if Hide is set. Error(nil) is nil.
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

// text returns the text of an error, and replaces the texts of the errors that it wraps in their places. If a
// receiver repeats one of our own words, only its repetition is hidden.
func (g Guard) text(err error) string {
	if masked, ok := err.(*maskedError); ok {
		return masked.text
	}
	if hidden, ok := g.said(err); ok && g.Hide {
		return hidden
	} else if ok {
		return visible.Line(g.quoted(err, hidden))
	}
	text, places := err.Error(), []place{}
	for _, cause := range causes(err) {
		if p := (place{cause.Error(), g.text(cause)}); p.was != p.now {
			places = append(places, p)
		}
	}
	return fill(text, places)
}

// quoted returns the text of an error without secrets and records. hidden is the same text without the receiver's words: our own
// words around them stay whole. As in Quote, secrets are taken out before and after the records.
func (g Guard) quoted(err error, hidden string) string {
	text := err.Error()
	clean := g.Secrets.Replace(text)
	if _, whole := err.(interface{ Whole() }); whole && clean != text {
		return hidden // a command with a mask in it, or without its end, is another command
	} else if whole || g.Redact == nil {
		return clean
	}
	before, after, _ := strings.Cut(hidden, Hidden)
	words, begins := strings.CutPrefix(text, before)
	words, ends := strings.CutSuffix(words, after)
	if !begins || !ends {
		before, words, after = "", text, ""
	}
	return g.Secrets.Replace(before + g.Redact(g.Secrets.Replace(words)) + after)
}

func (g Guard) said(err error) (string, bool) {
	if hidden, ok := g.Said(err); ok {
		return hidden, true
	}
	return saidOnTheWay(err)
}

// saidOnTheWay hides the text that packages of Go quote from a certificate or from an answer.
func saidOnTheWay(err error) (string, bool) {
	switch e := err.(type) { // this function is called with each error of a chain
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

// causes returns the errors that an error wraps, or whose text it has.
func causes(err error) []error {
	switch e := err.(type) { // this function is called with each error of a chain
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

// place is a part of a text, and its replacement.
type place struct{ was, now string }

// fill replaces the places of a text, which are in its order. If the text lacks one of them, all of the text is
// hidden: it may contain the words of that place.
func fill(text string, places []place) string {
	var ours []string // the text between the places
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
		for _, p := range places { // as if an error contained its cause twice
			own = strings.ReplaceAll(own, p.was, p.now)
		}
		b.WriteString(own)
		if i < len(places) {
			b.WriteString(places[i].now)
		}
	}
	return b.String()
}
