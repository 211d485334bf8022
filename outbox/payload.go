package outbox

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// payload returns the bytes to write, which are not nil, and their size as max_record_bytes counts it.
func (o *Outbox) payload(value any) (text []byte, size int, err error) {
	if given, ok := value.([]byte); ok && o.config.Raw {
		if given == nil {
			given = []byte{}
		}
		return given, len(given), nil
	}
	if isBytes(reflect.TypeOf(value)) {
		advice := "this outbox holds JSON: give a json.RawMessage, or set Config.Raw for a table whose payload is a bytea"
		if o.config.Raw {
			advice = "encoding/json makes base64 of it: convert it to a []byte"
		}
		return nil, 0, fmt.Errorf("its Payload is a %s, and %s", strings.Replace(fmt.Sprintf("%T", value), "uint8", "byte", 1), advice)
	}
	if text, err = payloadJSON(value); err != nil {
		return nil, 0, err
	}
	if o.config.Raw {
		return text, len(text), nil
	}
	if size, err = jsonbBytes(text); err == nil {
		return text, size, nil
	}
	if errors.Is(err, errNUL) {
		if place, found := find(value, func(s string) bool { return strings.ContainsRune(s, 0) }); found {
			return nil, 0, fmt.Errorf("its Payload%s %w", place, errNUL)
		}
	}
	return nil, 0, fmt.Errorf("its Payload %w", err)
}

// payloadJSON returns the JSON of a value. A json.RawMessage keeps its bytes.
func payloadJSON(value any) ([]byte, error) {
	if pointer, ok := value.(*json.RawMessage); ok && pointer != nil {
		value = *pointer
	}
	text, given := value.(json.RawMessage)
	given = given && text != nil
	var err error
	if given {
		err = json.Unmarshal(text, new(json.RawMessage))
	} else {
		text, err = encodeJSON(value)
	}
	if err != nil {
		return nil, fmt.Errorf("encode its Payload: %w", err)
	}
	if !utf8.Valid(text) { // of a json.RawMessage, perhaps inside the value, or of a MarshalJSON
		return nil, fmt.Errorf("its Payload %w", errUTF8)
	}
	// encoding/json writes this escape for bytes that are not UTF-8, and U+FFFD itself without an escape.
	if !given && bytes.Contains(text, []byte(`\ufffd`)) {
		if place, found := find(value, func(s string) bool { return !utf8.ValidString(s) }); found {
			return nil, fmt.Errorf("its Payload%s %w", place, errUTF8)
		}
	}
	return text, nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func marshals(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }

// isBytes reports whether encoding/json writes a value of the type as base64.
func isBytes(t reflect.Type) bool {
	for ; t != nil && t.Kind() == reflect.Pointer && !marshals(t); t = t.Elem() {
	}
	return t != nil && !marshals(t) && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !marshals(reflect.PointerTo(t.Elem()))
}
