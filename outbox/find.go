package outbox

import (
	"fmt"
	"reflect"
)

// find returns the place of a string in a value that is encoded as JSON, such as `.Guests[2].Name`; "" is the value
// itself. In a type with a MarshalJSON too it looks at the exported fields: most of them encode just those.
func find(value any, wanted func(string) bool) (place string, found bool) {
	s := search{wanted: wanted, seen: map[visit]bool{}}
	return s.in(reflect.ValueOf(value))
}

type search struct {
	wanted func(string) bool
	seen   map[visit]bool // a value with a MarshalJSON may have cycles
}

type visit struct {
	pointer uintptr
	length  int
	kind    reflect.Type
}

func (s search) in(v reflect.Value) (place string, found bool) {
	switch v.Kind() {
	case reflect.String:
		return "", s.wanted(v.String())
	case reflect.Interface:
		return s.in(v.Elem())
	case reflect.Pointer:
		if s.again(v, 0) {
			return "", false
		}
		return s.in(v.Elem())
	case reflect.Slice, reflect.Array:
		return s.inList(v)
	case reflect.Map:
		return s.inMap(v)
	case reflect.Struct:
		return s.inStruct(v)
	default:
		return "", false
	}
}

func (s search) again(v reflect.Value, length int) bool {
	at := visit{v.Pointer(), length, v.Type()}
	before := s.seen[at]
	s.seen[at] = true
	return before
}

func (s search) inList(v reflect.Value) (string, bool) {
	if v.Type().Elem().Kind() == reflect.Uint8 || v.Kind() == reflect.Slice && s.again(v, v.Len()) {
		return "", false
	}
	for i := range v.Len() {
		if place, found := s.in(v.Index(i)); found {
			return fmt.Sprintf("[%d]%s", i, place), true
		}
	}
	return "", false
}

func (s search) inMap(v reflect.Value) (string, bool) {
	if s.again(v, v.Len()) {
		return "", false
	}
	for keys := v.MapRange(); keys.Next(); {
		key := keys.Key()
		if key.Kind() == reflect.String && s.wanted(key.String()) {
			return fmt.Sprintf("[%.100q]", key.String()), true
		}
		if place, found := s.in(keys.Value()); found {
			return fmt.Sprintf("[%.100q]%s", fmt.Sprint(key), place), true
		}
	}
	return "", false
}

func (s search) inStruct(v reflect.Value) (string, bool) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() && !field.Anonymous || field.Tag.Get("json") == "-" {
			continue
		}
		if place, found := s.in(v.Field(i)); found {
			return "." + field.Name + place, true
		}
	}
	return "", false
}
