package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

var root = filepath.Join("..", "..")

func TestReference_IsCurrent(t *testing.T) {
	t.Parallel()
	files, err := generate(root)
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	for path, want := range files {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		require.Equal(t, want, string(text), "%s is not current: run make reference", path)
	}
}

func TestSettings_AreThoseOfTheStructs(t *testing.T) {
	t.Parallel()
	file, err := readAll(root)
	require.NoError(t, err)
	process := file.named("processes")
	poll := process.named("poll")
	require.Equal(t, "the longest wait between two looks at the source while there is nothing to deliver. After work the wait is shorter, from 5 ms on. Default: `200ms`. From `5ms` to `1m`.", poll.meaning())
	require.Equal(t, "`halt` at a record that fails for good, or `dead_letter` to put it aside with its error and go on. Default: `halt`.", process.named("on_poison").meaning())
	require.Equal(t, "compression of the batches: `none`, `gzip`, `snappy`, `lz4` or `zstd`. Default: `snappy`.", process.named("sink").named("kafka").named("compression").meaning())
	require.Equal(t, "a larger record is not fetched. Its process halts and names it. Default: `67108864` (64 MiB). From `1` to `536870912` (512 MiB).", process.named("source").named("max_record_bytes").meaning())
	specs, err := filepath.Glob(filepath.Join(root, "sinks", "*", "spec.go"))
	require.NoError(t, err)
	for _, spec := range specs {
		kind := filepath.Base(filepath.Dir(spec))
		require.Equal(t, kind, process.named("sink").named(kind).Name)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// examples are the files that the documents and examples have, by where they stand. The one of examples/own-sink has a sink that
// only its own program knows.
func examples(t *testing.T) map[string]any {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/sinks/*.md", "examples/*/dispatcher.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.Contains(path, "own-sink") })
	all := map[string]any{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		blocks := [][]string{{"", string(text)}}
		if strings.HasSuffix(path, ".md") {
			blocks = yamlBlock.FindAllStringSubmatch(string(text), -1)
		}
		for _, block := range blocks {
			if strings.Contains(block[1], "\nprocesses:") || strings.HasPrefix(block[1], "processes:") {
				all[path+": "+block[1]] = value(t, block[1])
			}
		}
	}
	return all
}

// value is what a YAML file holds, as JSON has it.
func value(t *testing.T, text string) any {
	t.Helper()
	reference := regexp.MustCompile(`(["']?)\$\{[^}]*\}`) // which the program reads also where YAML would see a mapping
	text = reference.ReplaceAllStringFunc(text, func(s string) string { return strings.NewReplacer("{", "(", "}", ")").Replace(s) })
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)
	encoded, err := json.Marshal(v)
	require.NoError(t, err)
	restored := regexp.MustCompile(`\$\(([^)]*)\)`).ReplaceAll(encoded, []byte(`$${$1}`))
	require.NoError(t, json.Unmarshal(restored, &v))
	return v
}

// A tool of YAML that knows no references, such as an editor, reads the same in the pages: between braces, a reference is
// in quotes.
func TestPages_AreTheSameToOtherToolsOfYAML(t *testing.T) {
	t.Parallel()
	blocks := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/sinks/*.md", "receivers/*/README.md", "examples/*/README.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
				blocks++
				require.Equal(t, value(t, block[1]), plainValue(t, block[1]), "%s: %s", path, block[1])
			}
		}
	}
	require.Greater(t, blocks, 20)
}

// plainValue is value to a tool that knows no references.
func plainValue(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)
	encoded, err := json.Marshal(v)
	require.NoError(t, err)
	v = nil
	require.NoError(t, json.Unmarshal(encoded, &v))
	return v
}

func schemaText(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/dispatcher.schema.json"))
	require.NoError(t, err)
	var schema object
	require.NoError(t, json.Unmarshal(text, &schema))
	return schema
}

func TestSchema_AcceptsTheExamples(t *testing.T) {
	t.Parallel()
	schema := schemaText(t)
	all := examples(t)
	require.Greater(t, len(all), 8)
	for where, file := range all {
		require.Empty(t, (&validator{t, schema}).faults(schema, file, ""), where)
	}
}

func TestSchema_AcceptsWhatTheProgramDoes(t *testing.T) {
	t.Parallel()
	schema := schemaText(t)
	for _, rest := range []string{
		"batch: ${BATCH}", "limit: 50/s", "limit: ${LIMIT}", "retry: {jitter: 0%, initial: 1.5s, max: 1m30s, attempts: 3}", "breaker: {failures: 3}",
		"on_poison: dead_letter", "on_timeout: halt", "start: beginning", "start: int:00000000000000000042",
	} {
		require.Empty(t, (&validator{t, schema}).faults(schema, value(t, "processes: {a: {source: {table: t}, sink: {stdout: {}}, "+rest+"}}"), ""), rest)
	}
	for _, sink := range []string{
		"stdout: ", "webhook: {url: 'http://h', quote_answers: false, headers: {X-A: 1}, tls: {}}", "nats: {url: u, stream: 1, subject: s, declare: {subjects: 'a b'}}",
		"sql: {statement: SELECT 1, rows: at_least 1}", "sql: {statement: [SELECT 1, SELECT 2]}", "exec: {command: [cat, 1], env: {A: true}}",
	} {
		require.Empty(t, (&validator{t, schema}).faults(schema, value(t, "processes: {a: {source: {table: t}, sink: {"+sink+"}}}"), ""), sink)
	}
}

func TestSchema_RefusesWhatTheProgramRefuses(t *testing.T) {
	t.Parallel()
	schema := schemaText(t)
	for _, text := range []string{
		"database: x", "processes: {}", "processes: {a: {source: {table: t}}}", "processes: {a: {source: {}, sink: {stdout: {}}}}",
		"processes: {a: {source: {table: t}, sink: {}}}", "processes: {a: {source: {table: t}, sink: {stdout: {}, sql: {statement: x}}}}",
		"processes: {a: {source: {table: t}, sink: {stdout: {path: x}}}}", "processes: {a: {source: {table: t}, sink: stdout}}",
		"processes: {a: {source: {table: t}, sink: {kafka: {brokers: b, topic: t}}}}",
	} {
		require.NotEmpty(t, (&validator{t, schema}).faults(schema, value(t, text), ""), text)
	}
	for _, rest := range []string{
		"tries: 3", "batch: 0", "batch: 10001", "batch: many", "poll: 5", "retry: {jitter: 20}", "limit: 50", "breaker: {cooldown: 5s}", "on_poison: ignore",
		"retry: {max: forever}", "checkpoint: 10001",
	} {
		require.NotEmpty(t, (&validator{t, schema}).faults(schema, value(t, "processes: {a: {source: {table: t}, sink: {stdout: {}}, "+rest+"}}"), ""), rest)
	}
}

// validator holds a value against the part of JSON Schema that the schema uses.
type validator struct {
	t    *testing.T
	root object
}

func (v *validator) faults(schema object, value any, at string) (faults []string) {
	v.t.Helper()
	refuse := func(why string) { faults = append(faults, at+": "+why) }
	for word, rule := range schema {
		switch word {
		case "$schema", "$defs", "title", "description", "default", "properties":
		case "$ref":
			name, ok := strings.CutPrefix(rule.(string), "#/$defs/")
			require.True(v.t, ok)
			faults = append(faults, v.faults(v.root["$defs"].(object)[name].(object), value, at)...)
		case "anyOf":
			if !slices.ContainsFunc(rule.([]any), func(s any) bool { return v.faults(s.(object), value, at) == nil }) {
				refuse("none of anyOf")
			}
		case "type":
			if !isType(rule, value) {
				refuse("type")
			}
		case "enum":
			if !slices.ContainsFunc(rule.([]any), func(one any) bool { return reflect.DeepEqual(one, value) }) {
				refuse("enum")
			}
		case "pattern":
			if text, ok := value.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(text) {
				refuse("pattern")
			}
		case "minimum", "maximum":
			if n, ok := value.(float64); ok && (word == "minimum" && n < rule.(float64) || word == "maximum" && n > rule.(float64)) {
				refuse(word)
			}
		case "items":
			values, _ := value.([]any)
			for _, one := range values {
				faults = append(faults, v.faults(rule.(object), one, at+"[]")...)
			}
		case "minProperties", "maxProperties":
			if o, ok := value.(object); ok && (word[1] == 'i' && len(o) < int(rule.(float64)) || word[1] == 'a' && len(o) > int(rule.(float64))) {
				refuse(word)
			}
		case "required":
			o, ok := value.(object)
			for _, name := range rule.([]any) {
				if ok && o[name.(string)] == nil {
					refuse("required: " + name.(string))
				}
			}
		case "additionalProperties":
			properties, _ := schema["properties"].(object)
			o, _ := value.(object)
			for name, one := range o {
				below, known := properties[name].(object)
				if other, ok := rule.(object); !known && ok {
					below, known = other, true
				}
				if !known {
					refuse("unknown: " + name)
					continue
				}
				faults = append(faults, v.faults(below, one, at+"."+name)...)
			}
		default:
			require.Fail(v.t, "the validator does not know "+word)
		}
	}
	return faults
}

func isType(types, value any) bool {
	all, ok := types.([]any)
	if !ok {
		all = []any{types}
	}
	var is []string
	switch n := value.(type) {
	case nil:
		is = []string{"null"}
	case bool:
		is = []string{"boolean"}
	case string:
		is = []string{"string"}
	case []any:
		is = []string{"array"}
	case object:
		is = []string{"object"}
	case float64:
		is = []string{"number"}
		if n == float64(int64(n)) {
			is = append(is, "integer")
		}
	}
	return slices.ContainsFunc(is, func(one string) bool { return slices.Contains(all, any(one)) })
}
