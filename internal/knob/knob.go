package knob

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Knob is one setting: a field of a Config struct with its tags.
type Knob struct {
	Name       string
	Library    bool // it is not a key of a file
	Field      reflect.StructField
	Default    string
	Min, Max   string // a number, or the name of another setting of the struct
	OneOf      []string
	Example    string // how to write it
	Required   bool   // it must be given
	Pattern    string // of a text that its type reads
	Secret     bool
	File       string // "", "secret" or "trusted"
	Split, One bool   // a list may also be one text: of its elements, or its only element
	True       string // the word for true
	False      string // the word for false; "" if there is none
	Percent    bool
	Zero       string // the value of the field for a 0, if the zero value means the default
	References []string
}

// Of returns the settings of a struct type, in the order of its fields. It includes a field without a name if that
// has references. It panics if a tag is wrong.
func Of(t reflect.Type) []Knob {
	var all []Knob
	for _, field := range reflect.VisibleFields(t) {
		k, ok := FromField(field)
		if !ok {
			continue
		}
		if other := k.Max; other != "" && other[0] >= 'a' && !slices.ContainsFunc(all, func(before Knob) bool { return before.Name == other }) {
			panic(fmt.Sprintf("field %s: the setting %s is not declared before it", field.Name, other))
		}
		all = append(all, k)
	}
	return all
}

// FromField returns the setting that a field declares, and whether it declares one.
func FromField(field reflect.StructField) (Knob, bool) {
	tag := field.Tag
	name, named := tag.Lookup("knob")
	references := tag.Get("references")
	if !named && references == "" {
		return Knob{}, false
	}
	k := Knob{
		Field: field, Default: tag.Get("default"), Min: tag.Get("min"), Max: tag.Get("max"), OneOf: strings.Fields(tag.Get("oneof")),
		Example: tag.Get("like"), Pattern: tag.Get("pattern"), Secret: tag.Get("secret") == "true", File: tag.Get("file"),
		Split: tag.Get("split") == "true", One: tag.Get("one") == "true", True: "true", False: "false", Percent: tag.Get("percent") == "true", Zero: tag.Get("zero"),
	}
	k.Name, k.Library = strings.CutPrefix(name, "-")
	if example, ok := tag.Lookup("need"); ok {
		k.Example, k.Required = example, true
	}
	if word, ok := tag.Lookup("true"); ok {
		k.True, k.False = word, tag.Get("false")
	}
	if references != "" {
		k.References = strings.Split(references, ",")
	}
	return k, true
}

// Words returns the words for a truth value. The word for false, the default, comes first.
func (k Knob) Words() []string {
	return slices.DeleteFunc([]string{k.False, k.True}, func(word string) bool { return word == "" })
}

// Duration reports whether the setting is a length of time.
func (k Knob) Duration() bool { return k.Field.Type == reflect.TypeFor[time.Duration]() }

// Bounds returns the smallest and the largest value of a number, or of a duration in nanoseconds. A bound may be
// another setting of the same struct. in is that struct.
func (k Knob) Bounds(in reflect.Value) (least, greatest int64) {
	return k.bound(k.Min, in, math.MinInt64), k.bound(k.Max, in, math.MaxInt64)
}

func (k Knob) bound(text string, in reflect.Value, without int64) int64 {
	if text == "" {
		return without
	}
	for _, other := range Of(in.Type()) {
		if other.Name != text {
			continue
		}
		if n := in.FieldByIndex(other.Field.Index).Int(); n != 0 {
			return n
		}
		return other.number(other.Default)
	}
	return k.number(text)
}

// Stored returns the value of the field for a number of a file.
func (k Knob) Stored(n int64) int64 {
	if n == 0 && k.Zero != "" {
		return k.number(k.Zero)
	}
	return n
}

// number reads the text of a tag. Underscores may group its digits.
func (k Knob) number(text string) int64 {
	if k.Duration() {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(fmt.Sprintf("field %s: %v", k.Field.Name, err))
		}
		return int64(d)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("field %s: %v", k.Field.Name, err))
	}
	return n
}

// shown writes a number as people write it.
func (k Knob) shown(n int64) string {
	switch {
	case k.Duration():
		return time.Duration(n).String()
	case k.Percent:
		return strconv.FormatInt(n, 10) + "%"
	default:
		return strconv.FormatInt(n, 10)
	}
}

// Fill sets the zero fields of *config to their defaults, including those of nested structs. If a default is beyond a
// bound that is another setting, it becomes that bound. A nested struct with a required setting is left alone if it
// is zero, because it was not given.
func Fill(config any) { fill(reflect.ValueOf(config).Elem()) }

func fill(v reflect.Value) {
	for _, k := range Of(v.Type()) {
		field := v.FieldByIndex(k.Field.Index)
		switch {
		case field.Kind() == reflect.Struct && field.IsZero() && requires(field.Type()):
		case field.Kind() == reflect.Struct:
			fill(field)
		case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct && !field.IsNil() && isConfig(field.Type().Elem()):
			fill(field.Elem())
		case k.Default == "" || !field.IsZero():
		case field.Kind() == reflect.String:
			field.SetString(k.Default)
		case field.CanInt():
			least, greatest := k.Bounds(v)
			field.SetInt(min(max(k.number(k.Default), least), greatest))
		default:
			panic(fmt.Sprintf("field %s: no default can be set", k.Field.Name))
		}
	}
}

// requires reports whether a struct type has a required setting.
func requires(t reflect.Type) bool {
	return slices.ContainsFunc(Of(t), func(k Knob) bool { return k.Required })
}

// isConfig reports whether a type has settings.
func isConfig(t reflect.Type) bool { return t.Kind() == reflect.Struct && len(Of(t)) > 0 }

// Check returns every fault of a struct whose defaults are filled in: settings that are missing, out of bounds or not
// one of the known words. It quotes no secret.
func Check(config any) error {
	v := reflect.ValueOf(config)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return errors.Join(check(v, "")...)
}

func check(v reflect.Value, above string) (faults []error) {
	for _, k := range Of(v.Type()) {
		field := v.FieldByIndex(k.Field.Index)
		k.Name = above + k.Name
		switch {
		case k.Required && isEmpty(field):
			faults = append(faults, fmt.Errorf("%s is missing: write it as in %s", k.Name, k.Example))
		case isConfig(field.Type()) && field.IsZero(): // not given
		case isConfig(field.Type()):
			faults = append(faults, check(field, k.Name+".")...)
		case field.Kind() == reflect.Pointer && isConfig(field.Type().Elem()) && !field.IsNil():
			faults = append(faults, check(field.Elem(), k.Name+".")...)
		default:
			faults = append(faults, k.fault(field, v))
		}
	}
	return faults
}

// isEmpty reports whether a value is zero, or an empty list.
func isEmpty(v reflect.Value) bool { return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 }

// fault returns the fault of a value of a struct, or nil.
func (k Knob) fault(value, in reflect.Value) error {
	if len(k.OneOf) > 0 && !value.IsZero() && !slices.Contains(k.OneOf, value.String()) {
		return fmt.Errorf("%s must be %s, got %q", k.Name, Either(k.OneOf), value.String())
	}
	if !value.CanInt() {
		return nil
	}
	least, greatest := k.Bounds(in)
	n := value.Int()
	switch {
	case n == 0 && k.Default == "": // not given
		return nil
	case n == k.Stored(0):
		n = 0
	}
	switch {
	case n >= least && n <= greatest:
		return nil
	case greatest == math.MaxInt64:
		return fmt.Errorf("%s must be at least %s, got %s", k.Name, k.shown(least), k.shown(n))
	default:
		return fmt.Errorf("%s must be between %s and %s, got %s", k.Name, k.shown(least), k.shown(greatest), k.shown(n))
	}
}

// Either joins words: a, b or c.
func Either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Int returns the setting of that name in a struct, or in a pointer to one; 0 if there is none.
func Int(config any, name string) int {
	v := reflect.Indirect(reflect.ValueOf(config))
	for _, k := range Of(v.Type()) {
		if field := v.FieldByIndex(k.Field.Index); k.Name == name && field.CanInt() {
			return int(field.Int())
		}
	}
	return 0
}

// Fault is a mistake in one setting whose value may be quoted.
type Fault struct {
	Name string
	Err  error
}

// Error returns the text of Err.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }
