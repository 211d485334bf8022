// Package route makes the address of a record at a receiver, such as a routing key or a topic, from a template.
//
// A template is Go's text/template over the fields Process, Table, ID, Key, Type and Headers of the record and its
// DedupKey, with the functions lower, upper and replace (old, new, text). It can name nothing else of the program.
//
// An address may consist of tokens with a dot between them, as a subject or a routing key does. Then the template is
// made with Tokens, and no value of a record reaches beyond its own token.
package route

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Template makes the address of a record. It is safe for concurrent use.
type Template struct {
	fixed    string
	template *template.Template // nil: fixed
	text     string
}

// Fixed reports whether all records have the same address.
func (t *Template) Fixed() bool { return t.template == nil }

// private matches what prints the key or a header in a template: their names, and a dot or a $ by itself, which may be
// the whole record.
var private = regexp.MustCompile(`\.(Key|Headers)\b|[\s({|,=][.$][\s)}|,]`)

// Shown returns an address as an error may name it: the template itself if it may print the record's key or headers.
func (t *Template) Shown(address string) string {
	if private.MatchString(t.text) {
		return t.text
	}
	return address
}

// own is a text from the configuration, and not from a record: it needs no escaping.
type own string

// fields holds everything that a template can name.
type fields struct {
	Process, Table own
	ID, Key, Type  string
	Headers        map[string]string

	delivery *processor.Delivery
}

func fieldsOf(d *processor.Delivery) fields {
	return fields{own(d.Process), own(d.Table), d.ID, d.Key, d.Type, d.Headers, d}
}

// DedupKey is made only where a template names it.
func (f fields) DedupKey() string { return f.delivery.DedupKey() }

var functions = template.FuncMap{
	"lower": func(value any) any { return mapped(value, strings.ToLower) },
	"upper": func(value any) any { return mapped(value, strings.ToUpper) },
	"replace": func(from, to, text any) string {
		return strings.ReplaceAll(fmt.Sprint(text), fmt.Sprint(from), fmt.Sprint(to))
	},
}

// mapped changes a value. A value from the configuration stays one.
func mapped(value any, change func(string) string) any {
	if text, ok := value.(own); ok {
		return own(change(string(text)))
	}
	return change(fmt.Sprint(value))
}

// New parses a template. A text without {{ }} is the address of every record.
func New(text string) (*Template, error) {
	t, err := parseText(text, functions)
	if err == nil {
		err = t.try()
	}
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", text, err)
	}
	return t, nil
}

func parseText(text string, functions template.FuncMap) (*Template, error) {
	t, err := template.New("").Option("missingkey=zero").Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	if isFixed(t) {
		return &Template{fixed: text}, nil
	}
	return &Template{template: t, text: text}, nil
}

// try finds a field that does not exist, before the first record does.
func (t *Template) try() error {
	if _, err := t.Of(processor.Delivery{}); err != nil {
		return fmt.Errorf("%w; there are .Process, .Table, .ID, .Key, .Type, .Headers and .DedupKey", err)
	}
	return nil
}

func isFixed(t *template.Template) bool {
	if t.Tree == nil {
		return true
	}
	for _, node := range t.Tree.Root.Nodes {
		if node.Type() != parse.NodeText {
			return false
		}
	}
	return true
}

// Of returns the address of a record.
func (t *Template) Of(d processor.Delivery) (string, error) {
	if t.template == nil {
		return t.fixed, nil
	}
	var text bytes.Buffer
	err := t.template.Execute(&text, fieldsOf(&d))
	if refused := new(escapeError); errors.As(err, &refused) {
		return "", refused.error
	}
	return text.String(), err
}
