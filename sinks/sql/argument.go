package sql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/jsonline"
)

// argument is a part of a record that statements can name.
type argument struct {
	name  string
	value func(processor.Delivery) []byte // in PostgreSQL's text format; nil is NULL
}

var arguments = []argument{
	{"id", func(d processor.Delivery) []byte { return []byte(d.ID) }},
	{"key", func(d processor.Delivery) []byte { return orNull(d.Key) }},
	{"type", func(d processor.Delivery) []byte { return orNull(d.Type) }},
	{"payload", payload},
	{"headers", headers},
	{"created_at", func(d processor.Delivery) []byte { return timestamp(d.CreatedAt) }},
	{"sequence", func(d processor.Delivery) []byte { return strconv.AppendInt(nil, d.Sequence, 10) }},
	{"position", func(d processor.Delivery) []byte { return []byte(d.Position) }},
	{"dedup_key", func(d processor.Delivery) []byte { return []byte(d.DedupKey()) }},
	{"process", func(d processor.Delivery) []byte { return []byte(d.Process) }},
	{"epoch", func(d processor.Delivery) []byte { return strconv.AppendInt(nil, int64(d.Epoch), 10) }},
}

// findArgument returns the index of a name in arguments, or -1.
func findArgument(name string) int {
	return slices.IndexFunc(arguments, func(a argument) bool { return a.name == name })
}

// has reports whether a statement names an argument.
func has(statements []statement, name string) bool {
	index := findArgument(name)
	return slices.ContainsFunc(statements, func(s statement) bool { return slices.Contains(s.params, index) })
}

func argumentNames() string {
	names := make([]string, len(arguments))
	for i, a := range arguments {
		names[i] = "@" + a.name
	}
	return strings.Join(names, ", ")
}

func orNull(value string) []byte {
	if value == "" {
		return nil
	}
	return []byte(value)
}

func payload(d processor.Delivery) []byte {
	if len(d.Payload) == 0 {
		return nil
	}
	return d.Payload
}

func headers(d processor.Delivery) []byte {
	return jsonline.Object(d.Headers) // without escapes for HTML: a text or json column would show them
}

// timestamp writes a form that timestamptz reads under any DateStyle and TimeZone. The year 0 of time.Time is 1 BC.
func timestamp(t time.Time) []byte {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	year, era := t.Year(), ""
	if year <= 0 {
		year, era = 1-year, " BC"
	}
	return fmt.Appendf(nil, "%04d-%s+00%s", year, t.Format("01-02 15:04:05.999999"), era)
}
