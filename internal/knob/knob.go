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
	Field      reflect.StructField
	Default    string
	Min, Max   string
	OneOf      []string
	Example    string // how to write it; a setting with an example is required
	Secret     bool
	File       string // "", "secret" or "trusted"
	Split      bool
	True       string // the word for true
	False      string // the word for false; "" if there is none
	Percent    bool
	References []string
}

// Required reports whether the setting must be given.
func (k Knob) Required() bool { return k.Example != "" }

// Of returns the settings of a struct type, in the order of its fields. A field without a name is among them if it has
// references.
func Of(t reflect.Type) []Knob {
	var all []Knob
	for _, field := range reflect.VisibleFields(t) {
		tag := field.Tag
		name, named := tag.Lookup("knob")
		references := tag.Get("references")
		if !named && references == "" {
			continue
		}
		k := Knob{
			Name: name, Field: field, Default: tag.Get("default"), Min: tag.Get("min"), Max: tag.Get("max"), OneOf: strings.Fields(tag.Get("oneof")),
			Example: tag.Get("need"), Secret: tag.Get("secret") == "true", File: tag.Get("file"), Split: tag.Get("split") == "true",
			True: "true", False: "false", Percent: tag.Get("percent") == "true",
		}
		if word, ok := tag.Lookup("true"); ok {
			k.True, k.False = word, tag.Get("false")
		}
		if references != "" {
			k.References = strings.Split(references, ",")
		}
		all = append(all, k)
	}
	return all
}

// Words are the words for a truth value, true first.
func (k Knob) Words() []string {
	return slices.DeleteFunc([]string{k.True, k.False}, func(word string) bool { return word == "" })
}

// Duration reports whether the setting is a length of time.
func (k Knob) Duration() bool { return k.Field.Type == reflect.TypeFor[time.Duration]() }

// Bounds are the least and the greatest value of a number, or of a duration in nanoseconds.
func (k Knob) Bounds() (least, greatest int64) {
	least, greatest = math.MinInt64, math.MaxInt64
	if k.Min != "" {
		least = k.number(k.Min)
	}
	if k.Max != "" {
		greatest = k.number(k.Max)
	}
	return least, greatest
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

// shown is a number as people write it.
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

// Fill gives the fields of *config that are zero their defaults, those of nested structs included.
func Fill(config any) { fill(reflect.ValueOf(config).Elem()) }

func fill(v reflect.Value) {
	for _, k := range Of(v.Type()) {
		field := v.FieldByIndex(k.Field.Index)
		switch {
		case field.Kind() == reflect.Struct:
			fill(field)
		case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct && !field.IsNil() && isConfig(field.Type().Elem()):
			fill(field.Elem())
		case k.Default == "" || !field.IsZero():
		case field.Kind() == reflect.String:
			field.SetString(k.Default)
		case field.CanInt():
			field.SetInt(k.number(k.Default))
		default:
			panic(fmt.Sprintf("field %s: no default can be set", k.Field.Name))
		}
	}
}

// isConfig reports whether a type has settings.
func isConfig(t reflect.Type) bool { return t.Kind() == reflect.Struct && len(Of(t)) > 0 }

// Check returns every fault of a struct whose defaults are filled in: what is missing, out of bounds or none of the known
// words. It quotes no secret.
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
		case k.Required() && isEmpty(field):
			faults = append(faults, fmt.Errorf("%s is missing: write it as in %s", k.Name, k.Example))
		case isConfig(field.Type()) && field.IsZero(): // not given
		case isConfig(field.Type()):
			faults = append(faults, check(field, k.Name+".")...)
		case field.Kind() == reflect.Pointer && isConfig(field.Type().Elem()) && !field.IsNil():
			faults = append(faults, check(field.Elem(), k.Name+".")...)
		default:
			faults = append(faults, k.fault(field))
		}
	}
	return faults
}

// isEmpty reports whether a value is none, or a list without an element.
func isEmpty(v reflect.Value) bool { return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 }

// fault returns what is wrong with a value, or nil.
func (k Knob) fault(value reflect.Value) error {
	if len(k.OneOf) > 0 && !value.IsZero() && !slices.Contains(k.OneOf, value.String()) {
		return fmt.Errorf("%s must be %s, got %q", k.Name, Either(k.OneOf), value.String())
	}
	if !value.CanInt() {
		return nil
	}
	least, greatest := k.Bounds()
	if n := value.Int(); n < least || n > greatest {
		return fmt.Errorf("%s must be between %s and %s, got %s", k.Name, k.shown(least), k.shown(greatest), k.shown(n))
	}
	return nil
}

// Either lists words: a, b or c.
func Either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Int returns the setting of that name of a struct, or of a pointer to one; 0 if it has none.
func Int(config any, name string) int {
	v := reflect.Indirect(reflect.ValueOf(config))
	for _, k := range Of(v.Type()) {
		if field := v.FieldByIndex(k.Field.Index); k.Name == name && field.CanInt() {
			return int(field.Int())
		}
	}
	return 0
}

// Fault is what is wrong with one setting, where its value may be quoted.
type Fault struct {
	Name string
	Err  error
}

// Error is that of Err.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }
