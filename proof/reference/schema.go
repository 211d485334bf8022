package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// object is a JSON object.
type object = map[string]any

// reference is a text with a reference, whose value no editor knows.
var reference = object{"type": "string", "pattern": `\$\{[^{}]+\}`}

// schemaOf is the JSON Schema of a file. It allows all that the program allows of one key, but for numbers in quotes.
func schemaOf(file setting) (string, error) {
	schema := file.schema()
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "The configuration of ordered-dispatcher"
	schema["$defs"] = object{"reference": reference}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(schema)
	return b.String(), err
}

var (
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	scalar = []string{"string", "number", "boolean"} // the program takes a text as it is spelled
)

func (s setting) schema() object {
	schema := s.value()
	if s.Name != "" && s.text != "" {
		schema["description"] = sentence(linked.ReplaceAllString(s.meaning(), "$1"))
	}
	if s.page != "" && len(s.below) > 0 {
		schema["description"] = "See " + s.page + "."
	}
	if s.form <= truth && s.defaults() != "" {
		schema["default"] = s.literal(s.defaults())
	}
	return schema
}

// sentence begins with a capital letter.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func (s setting) value() object {
	switch s.form {
	case number, duration, truth:
		return object{"anyOf": []object{s.plain(), {"$ref": "#/$defs/reference"}}}
	case list:
		texts := object{"type": "array", "items": object{"type": scalar}}
		if s.Split || s.One {
			return object{"anyOf": []object{texts, {"type": scalar}}}
		}
		return texts
	case names:
		return object{"type": "object", "additionalProperties": object{"type": scalar}}
	case keys:
		return s.object()
	case entries:
		return object{"type": "object", "minProperties": 1, "additionalProperties": s.object()}
	case oneOf:
		schema := s.object()
		schema["minProperties"], schema["maxProperties"] = 1, 1
		return schema
	}
	if len(s.OneOf) > 0 || s.Pattern != "" {
		return object{"anyOf": []object{s.plain(), {"$ref": "#/$defs/reference"}}}
	}
	return object{"type": scalar}
}

// plain is a value without a reference.
func (s setting) plain() object {
	switch {
	case len(s.words()) > 0:
		var words []any
		for _, word := range s.words() {
			words = append(words, s.literal(word))
			if s.literal(word) != word {
				words = append(words, word)
			}
		}
		return object{"enum": words}
	case s.Pattern != "":
		return object{"type": "string", "pattern": s.Pattern}
	case s.form == duration:
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
	case s.Percent:
		return object{"type": "string", "pattern": `^(100|[0-9]{1,2})%$`}
	default:
		return object{"type": "integer"}
	}
}

// literal is a text as YAML reads it.
func (s setting) literal(text string) any {
	if s.form == truth {
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	if s.form == number {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	}
	return text
}

// object is a mapping of the settings below.
func (s setting) object() object {
	properties := object{}
	var required []string
	for _, below := range s.below {
		properties[below.Name] = s.bounded(below)
		if below.Required {
			required = append(required, below.Name)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	if len(properties) == 0 {
		schema["type"] = []string{"object", "null"}
	}
	return schema
}

// bounded is the schema of a setting below, with the bounds of a number.
func (s setting) bounded(below setting) object {
	schema := below.schema()
	if below.form != number || below.Percent {
		return schema
	}
	plain := slices.Clone(schema["anyOf"].([]object))
	if n, ok := s.bound(below.Min, func(o setting) string { return o.Min }); ok {
		plain[0]["minimum"] = n
	}
	if n, ok := s.bound(below.Max, func(o setting) string { return o.Max }); ok {
		plain[0]["maximum"] = n
	}
	return schema
}
