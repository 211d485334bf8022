package yamlfile

import (
	"crypto/tls"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Decode reads the value as a mapping into the struct that into points to, by the knob tags of its fields. Every fault
// has its line and column. Defaults are not filled in: the zero value means them.
func (n Node) Decode(into any) { n.decode(reflect.ValueOf(into).Elem()) }

func (n Node) decode(v reflect.Value) {
	knobs := knob.Of(v.Type())
	named := slices.DeleteFunc(slices.Clone(knobs), func(k knob.Knob) bool { return k.Name == "" })
	if len(named) == 0 {
		n.Nothing()
		return
	}
	names := make([]string, len(named))
	for i, k := range named {
		names[i] = k.Name
	}
	m := n.Mapping(names...)
	for _, k := range named {
		node, found := m.Get(k.Name)
		if k.Required() {
			node, found = m.Need(k.Name, k.Example)
		}
		if found {
			node.set(k, v.FieldByIndex(k.Field.Index))
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
}

// set reads the value into a field.
func (n Node) set(k knob.Knob, field reflect.Value) {
	least, greatest := k.Bounds()
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
		n.setKind(k, field)
	}
}

// setKind reads the value into a field of a type that only its kind tells.
func (n Node) setKind(k knob.Knob, field reflect.Value) {
	least, greatest := k.Bounds()
	switch field.Kind() {
	case reflect.String:
		field.SetString(n.text(k))
	case reflect.Int, reflect.Int64:
		if k.Percent {
			field.SetInt(int64(n.Percent()))
		} else {
			field.SetInt(int64(n.Int(int(least), int(greatest))))
		}
	case reflect.Struct:
		n.decode(field)
	case reflect.Pointer:
		made := reflect.New(field.Type().Elem())
		n.decode(made.Elem())
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
		return n.SecretFile()
	case k.File == "trusted":
		return n.TrustedFile()
	default:
		return n.Text()
	}
}

// texts reads a list, or one text with the elements of a list.
func (n Node) texts(k knob.Knob) []string {
	if k.Split && n.IsScalar() {
		return strings.FieldsFunc(n.Text(), func(r rune) bool { return r == ',' || r == ' ' })
	}
	return n.List()
}

// unmarshal reads a scalar as its own type does.
func (n Node) unmarshal(into encoding.TextUnmarshaler) {
	text, ok := n.shown()
	if !ok {
		return
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		n.valueFault("%s %v", n.quoted(), err)
	}
}
