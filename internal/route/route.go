// Package route makes the address of a record at a receiver, such as a routing key
// or a topic, of a template.
//
// A template is Go's text/template over the fields Process, Table, ID, Key, Type
// and Headers of the record and its DedupKey, with the functions lower, upper and
// replace (old, new, text). It can name nothing else of the program.
package route

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Template makes an address of a record. It is safe for concurrent use.
type Template struct {
	fixed    string
	template *template.Template // nil: fixed
}

// fields is what a template can name.
type fields struct {
	Process, Table, ID, Key, Type string
	Headers                       map[string]string

	delivery *processor.Delivery
}

func fieldsOf(d *processor.Delivery) fields {
	return fields{d.Process, d.Table, d.ID, d.Key, d.Type, d.Headers, d}
}

// DedupKey is made only where a template names it.
func (f fields) DedupKey() string { return f.delivery.DedupKey() }

var functions = template.FuncMap{
	"lower":   strings.ToLower,
	"upper":   strings.ToUpper,
	"replace": func(from, to, text string) string { return strings.ReplaceAll(text, from, to) },
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
	return &Template{template: t}, nil
}

// try finds a field that does not exist before the first record does.
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
