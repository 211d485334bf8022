package draft

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Choice is what people chose besides the table.
type Choice struct {
	// Process is the name of the process. Default: that of the table.
	Process string
	// Schema is that of the cursor tables; "" for the default.
	Schema string
	// Sink is the kind of the receiver.
	Sink sinks.Spec
}

// width is the longest line of the file.
const width = 80

// Text is the configuration, with comments.
func (p Proposal) Text(c Choice) string {
	w := &writer{}
	w.comment("", "A proposal by `ordered-dispatcher init` for "+p.Table.Written()+". All keys: docs/configuration.md.")
	w.line("")
	w.comment("", "The address of the database comes from the environment, so that this file has no password. ${file:/run/secrets/url} would read it from a file.")
	w.line("database: ${DATABASE_URL}")
	if c.Schema != "" {
		w.line("schema: %s", scalar(c.Schema))
	}
	w.line("processes:")
	w.line("  %s:", scalar(p.Process(c)))
	p.source(w)
	p.sink(w, c.Sink)
	w.comment("    ", "Deliver the rows that the table holds already. With `end`, only those that come from now on. It counts once, at the first run.")
	if p.Unordered != "" {
		w.comment("    ", p.Unordered)
	}
	w.line("    start: beginning")
	return w.String()
}

// notName are the characters that the name of a process is not given by itself.
var notName = regexp.MustCompile(`[^a-z0-9_]+`)

// Process is the name of the process.
func (p Proposal) Process(c Choice) string {
	if c.Process != "" {
		return c.Process
	}
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(p.Table.Name), "_"), "_")
	if name == "" {
		return "records"
	}
	return name
}

func (p Proposal) source(w *writer) {
	w.line("    source:")
	w.line("      table: %s", scalar(p.Table.Written()))
	for _, note := range p.Notes {
		w.comment("      ", note)
	}
	if p.Preset != "" {
		w.comment("      ", "The table has the columns of a known one, so the preset names those of key, type and payload.")
		w.line("      preset: %s", p.Preset)
	}
	w.comment("      ", p.Why)
	w.line("      order: %s", p.Order)
	p.columns(w)
}

func (p Proposal) columns(w *writer) {
	named := w.Len()
	w.line("      columns:")
	before := w.Len()
	for _, column := range []struct{ key, name string }{
		{"id", p.Columns.ID}, {"created_at", p.Columns.CreatedAt}, {"key", p.Columns.Key}, {"type", p.Columns.Type},
		{"headers", p.Columns.Headers}, {"payload", p.Columns.Payload},
	} {
		if column.name != "" {
			w.line("        %s: %s", column.key, scalar(column.name))
		}
	}
	if w.Len() == before {
		w.Truncate(named)
	}
	if p.Preset == "" && p.Columns.Payload == "" {
		w.comment("      ", "A record's payload is its whole row as JSON. columns.payload would name one column instead.")
	}
	if len(p.Keys) > 0 && p.Columns.Key == "" && p.Preset == "" {
		w.comment("      ", "columns.key names the column with the key of a record, by which receivers tell its customer, order or account. It may be: "+
			strings.Join(p.Keys[:min(len(p.Keys), 5)], ", ")+".")
	}
}

func (p Proposal) sink(w *writer, spec sinks.Spec) {
	w.line("    sink:")
	needs := Needs(spec)
	if len(needs) == 0 {
		w.line("      %s: {}", spec.Name)
		return
	}
	w.line("      %s:", spec.Name)
	w.comment("        ", "Examples: put in your own.")
	for _, need := range needs {
		w.line("        %s", need)
	}
}

// Needs are examples of the keys that a kind of sink must have. A sink without any can run as it is.
func Needs(spec sinks.Spec) (needs []string) {
	for _, k := range knob.Of(reflect.TypeOf(spec.New()).Elem()) {
		if k.Required && !k.Library {
			needs = append(needs, k.Example)
		}
	}
	return append(needs, choices[spec.Name]...)
}

// choices are examples for kinds of sinks that need one of several keys, by kind.
var choices = map[string][]string{"pubsub": {"project: my-project"}, "rabbitmq": {"routing_key: orders"}}

// plain are the texts that YAML reads as they are.
var plain = regexp.MustCompile(`^[a-z_][a-z0-9_.]*$`)

// scalar writes a text so that YAML reads it back. JSON's strings are YAML's, too.
func scalar(text string) string {
	switch {
	case plain.MatchString(text) && text != "null" && text != "true" && text != "false" && text != "y" && text != "n" && text != "yes" && text != "no" && text != "on" && text != "off":
		return text
	case strings.Contains(text, "${"):
		return strconv.Quote(strings.ReplaceAll(text, "${", "$${"))
	default:
		return strconv.Quote(text)
	}
}

// writer makes the lines of the file.
type writer struct{ text []byte }

func (w *writer) String() string { return string(w.text) }

// Len is how much there is, and Truncate goes back to it.
func (w *writer) Len() int       { return len(w.text) }
func (w *writer) Truncate(n int) { w.text = w.text[:n] }

func (w *writer) line(format string, args ...any) {
	w.text = append(fmt.Appendf(w.text, format, args...), '\n')
}

// comment writes a comment, in lines that fit.
func (w *writer) comment(indent, text string) {
	line := ""
	for _, word := range strings.Fields(visible.Line(text)) {
		if line != "" && len(indent)+len("# ")+len(line)+1+len(word) > width {
			w.line("%s# %s", indent, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	w.line("%s# %s", indent, line)
}
