package yamlfile

import (
	"crypto/tls"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// By has functions for keys that only the caller can read.
type By map[string]func(Node)

// Decode reads the value as a mapping into the struct to which into points, by the knob tags of its fields. Every
// fault has its line and column. Decode fills in no defaults: the zero value means them. If by has a key, its
// function reads that key instead, in its turn. Decode returns the keys, for faults that concern several of them.
func (n Node) Decode(into any, by By) Mapping { return n.decode(reflect.ValueOf(into).Elem(), by) }

// Known returns the keys that Decode knows for a struct.
func Known(config any) []string { return names(knob.Of(reflect.TypeOf(config))) }

func names(knobs []knob.Knob) []string {
	var names []string
	for _, k := range knobs {
		if k.Name != "" && !k.Library {
			names = append(names, k.Name)
		}
	}
	return names
}

// below returns the paths of the keys in the values of a struct's own keys, by their names. A name that several of them
// have is left out, as it does not show which one is meant.
func below(t reflect.Type, path string) map[string]string {
	all := map[string]string{}
	for _, k := range knob.Of(t) {
		inner := k.Field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || k.Name == "" || k.Library {
			continue
		}
		at := join(path, k.Name)
		add := func(name, path string) {
			if _, twice := all[name]; twice {
				path = ""
			}
			all[name] = path
		}
		for _, name := range names(knob.Of(inner)) {
			add(name, join(at, name))
		}
		for name, path := range below(inner, at) {
			add(name, path)
		}
	}
	return all
}

func (n Node) decode(v reflect.Value, by By) Mapping {
	knobs := knob.Of(v.Type())
	known := names(knobs)
	if len(known) == 0 {
		if _, null := n.node.(*ast.NullNode); !null { // no value at all is as good as {}
			n.Mapping()
		}
		return Mapping{self: n}
	}
	m := n.known(known, below(v.Type(), ""))
	for _, k := range knobs {
		if k.Library {
			continue
		}
		node, found := m.Get(k.Name)
		if k.Required {
			node, found = m.Need(k.Name, k.Example)
		}
		switch read := by[k.Name]; {
		case !found:
		case read != nil:
			read(node)
		default:
			node.set(k, v)
		}
	}
	for _, k := range knobs {
		for _, name := range k.References {
			if node, found := m.Get(name); found {
				field := v.FieldByIndex(k.Field.Index)
				field.Set(reflect.ValueOf(append(field.Interface().([]string), node.References()...)))
			}
		}
	}
	return m
}

// set reads the value into a field of a struct.
func (n Node) set(k knob.Knob, in reflect.Value) {
	field := in.FieldByIndex(k.Field.Index)
	least, greatest := k.Bounds(in)
	n.example = k.Example
	switch into := field.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		n.unmarshal(into)
	case *time.Duration:
		*into = n.Duration(time.Duration(least), time.Duration(greatest))
	case **tls.Config:
		*into = n.tls()
	case *[]string:
		*into = n.texts(k)
	case *map[string]string:
		*into = n.Texts()
	case *bool:
		*into = n.OneOf(k.Words()...) == k.True
	default:
		n.setKind(k, field, least, greatest)
	}
}

// setKind reads the value into a field whose kind alone decides how to read it.
func (n Node) setKind(k knob.Knob, field reflect.Value, least, greatest int64) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(n.text(k))
	case reflect.Int, reflect.Int64:
		read := func() int { return n.Int(int(least), int(greatest)) }
		if k.Percent {
			read = n.Percent
		}
		field.SetInt(k.Stored(int64(read())))
	case reflect.Struct:
		n.decode(field, nil)
	case reflect.Pointer:
		made := reflect.New(field.Type().Elem())
		n.decode(made.Elem(), nil)
		field.Set(made)
	default:
		panic(fmt.Sprintf("field %s: a %s cannot be read from a file", k.Field.Name, field.Type()))
	}
}

func (n Node) text(k knob.Knob) string {
	switch {
	case len(k.OneOf) > 0:
		return n.OneOf(k.OneOf...)
	case k.Secret:
		return n.Secret()
	case k.File == "secret":
		path := n.Text()
		n.file.files = append(n.file.files, path)
		return path
	case k.File == "trusted":
		path := n.Text()
		n.file.trusted = append(n.file.trusted, path)
		return path
	default:
		return n.Text()
	}
}

// texts reads a list. If the setting allows it, that may also be one text with the elements, or the only element.
func (n Node) texts(k knob.Knob) []string {
	node, ok := n.plain()
	if !ok {
		return nil
	}
	switch _, single := literal(node); {
	case single && k.One:
		return []string{n.Text()}
	case single && k.Split:
		return strings.FieldsFunc(n.Text(), func(r rune) bool { return r == ',' || r == ' ' })
	default:
		return n.List()
	}
}

// unmarshal reads a scalar in the way of its own type.
func (n Node) unmarshal(into encoding.TextUnmarshaler) {
	text, ok := n.shown()
	if !ok {
		return
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		n.valueFault("%s %v", n.quoted(), err)
	}
}
