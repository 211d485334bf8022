package yamlfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
)

func environment(variables map[string]string) yamlfile.Environment {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

// read reads {a: text, n: number, d: duration, p: percent, w: word, s: secret, m: {…}}.
func read(text string, variables map[string]string) (map[string]any, error) {
	f := yamlfile.Parse("f.yaml", []byte(text), environment(variables))
	if err := f.Err(); err != nil {
		return nil, err
	}
	values := map[string]any{}
	m := f.Root().Mapping("a", "b", "n", "d", "p", "w", "s", "m")
	m.Read("a", func(n yamlfile.Node) { values["a"] = n.Text() })
	m.Read("b", func(n yamlfile.Node) { values["b"] = n.Text() })
	m.Read("n", func(n yamlfile.Node) { values["n"] = n.Int(1, 10) })
	m.Read("d", func(n yamlfile.Node) { values["d"] = n.Duration(time.Millisecond, time.Hour) })
	m.Read("p", func(n yamlfile.Node) { values["p"] = n.Percent() })
	m.Read("w", func(n yamlfile.Node) { values["w"] = n.OneOf("one", "two") })
	m.Read("s", func(n yamlfile.Node) { values["s"] = n.Secret() })
	m.Read("m", func(n yamlfile.Node) { values["m"] = n.Texts() })
	return values, f.Err()
}

func TestRead_Values(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]any{
		"a: x":                             {"a": "x"},
		"a: 0123":                          {"a": "0123"},
		"a: yes":                           {"a": "yes"},
		"a: ''":                            {"a": ""},
		"a: |\n  x\n  y\n":                 {"a": "x\ny\n"},
		"a: 'it''s'\r\nn: 3\r\n":           {"a": "it's", "n": 3},
		"\ufeffa: x":                       {"a": "x"},
		"{n: 10, d: 1m30s, p: 20%}":        {"n": 10, "d": 90 * time.Second, "p": 20},
		"n: ${N}":                          {"n": 7},
		"w: two # ${COMMENT}":              {"w": "two"},
		"a: &x y\nb: *x":                   {"a": "y", "b": "y"},
		"m: &m {k: v}\n<<: {a: 1, b: 2}":   {"m": map[string]string{"k": "v"}, "a": "1", "b": "2"},
		"<<: {a: 1}\na: 2":                 {"a": "2"},
		"s: {}\na: x":                      nil,
		"{s: ${SECRET}, a: ${SECRET}}":     {"s": "k: v # x\n- }", "a": "k: v # x\n- }"},
		"a: p${N}q${N}":                    {"a": "p7q7"},
		`a: "p$${N}q${N}"`:                 {"a": "p${N}q7"},
		"{a: $${N}, b: $x$}":               {"a": "${N}", "b": "$x$"},
		"a: ${DOLLARS}":                    {"a": "${N} $${N}"},
		"a: '${N}${SECRET}'":               {"a": "7k: v # x\n- }"},
		"{a: postgres://u:${N}@h/d, b: 1}": {"a": "postgres://u:7@h/d", "b": "1"},
	} {
		values, err := read(text, map[string]string{"N": "7", "SECRET": "k: v # x\n- }", "DOLLARS": "${N} $${N}"})
		if want == nil {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, values, text)
	}
}

func TestRead_FilesLoseTheLineBreakAtTheirEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a,b: c")
	require.NoError(t, os.WriteFile(path, []byte("line 1\nline 2\r\n\n"), 0o600))
	values, err := read("{a: ${file:"+path+"}, b: x}", nil)
	require.NoError(t, err)
	require.Equal(t, "line 1\nline 2", values["a"])
}

func TestRead_FilesWithoutAnEndAreRefused(t *testing.T) {
	t.Parallel()
	_, err := read("a: ${file:/dev/zero}", nil)
	require.ErrorContains(t, err, "f.yaml:1:4: a: the file /dev/zero cannot be read (it is neither a file nor a pipe): name the right one")
}

// Whatever a variable holds, it is that value of that key and nothing else.
func TestRead_AVariableCannotChangeTheStructure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Filter(func(s string) bool { return s != "" }).Draw(t, "value")
		style := rapid.SampledFrom([]string{"a: %\nb: x", "{a: %, b: x}", `{"a": "%", b: x}`, "a: '%'\nb: x", "a: >-\n  %\nb: x"}).Draw(t, "style")
		values, err := read(strings.ReplaceAll(style, "%", "${V}"), map[string]string{"V": value})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"a": value, "b": "x"}, values)
	})
}

// No text makes the reader panic, and what is wrong has a place in the file.
func TestRead_AnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "m", ": ", "{", "}", "[", "]", "\n", "  ", "- ", "&x ", "*x", "<<", "!!str ", "${A}", "$${", "'", `"`, "|", "#", "?", "\t", "é", "\x00", "~", "---\n"})).Draw(t, "parts")
		text := strings.Join(parts, "")
		_, err := read(text, nil)
		if err == nil {
			return
		}
		for _, fault := range err.(*yamlfile.Error).Faults {
			require.Positive(t, fault.Line)
			require.LessOrEqual(t, fault.Line, strings.Count(text, "\n")+2)
			require.Positive(t, fault.Column)
			require.NotEmpty(t, fault.Message)
		}
	})
}

func TestFaults_NameThePlaceAndTheNextStep(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct{ text, want string }{
		{"c: x", `f.yaml:1:1: the key "c" is not known: the keys here are a, b, n, d, p, w, s, m`},
		{"a: 1\nb: 2\na: 3", `f.yaml:3:1: the key "a" is here twice: keep one`},
		{"a: [1]", "f.yaml:1:1: a: expected a single value"},
		{"m: 3", "f.yaml:1:1: m: expected keys with values"},
		{"- a", "f.yaml:1:1: expected keys with values: the keys here are a, b, n, d, p, w, s, m"},
		{"b: 1\na:", "f.yaml:2:1: a: there is no value: give one, or remove the key"},
		{"n: many", `f.yaml:1:4: n: "many" is not a whole number: write one from 1 to 10`},
		{"n: 11", `f.yaml:1:4: n: "11" is out of bounds: write a number from 1 to 10`},
		{"n: ${BIG}", `f.yaml:1:4: n: "${BIG}" is out of bounds: write a number from 1 to 10`},
		{"d: 5", `f.yaml:1:4: d: "5" is not a duration: write a number with a unit, such as 200ms, 5s or 1m30s`},
		{"d: 7d", `f.yaml:1:4: d: "7d" is not a duration: write 168h`},
		{"d: 1d12h", `f.yaml:1:4: d: "1d12h" is not a duration: write a number with a unit, such as 200ms, 5s or 1m30s`},
		{"bb: x", `f.yaml:1:1: the key "bb" is not known: did you mean b? The keys here are a, b, n, d, p, w, s, m`},
		{"d: -5s", `f.yaml:1:4: d: "-5s" is out of bounds: write a duration from 1ms to 1h0m0s`},
		{"p: 20", `f.yaml:1:4: p: "20" is not a percentage: write a whole number from 0% to 100%, such as 20%`},
		{"p: 101%", `f.yaml:1:4: p: "101%" is not a percentage: write a whole number from 0% to 100%, such as 20%`},
		{"w: three", `f.yaml:1:4: w: "three" is not known here: write one or two`},
		{"a: é ${NOPE}", "f.yaml:1:4: a: the environment has no variable NOPE: set it, or write $${NOPE} for the text itself"},
		{"{b: é, a: ${NOPE}}", "f.yaml:1:11: a: the environment has no variable NOPE: set it, or write $${NOPE} for the text itself"},
		{"a: ${EMPTY}", "f.yaml:1:4: a: the variable EMPTY is set but empty: give it a value"},
		{"a: ${no-name}", "f.yaml:1:4: a: ${no-name} is not a reference: write ${NAME} or ${file:/path}, or $${no-name} for the text itself"},
		{"a: ${file:" + missing + "}", "f.yaml:1:4: a: the file " + missing + " cannot be read (no such file or directory): create it, or let this user read it"},
		{"m: {k: {${NAME}: x}}", "f.yaml:1:5: m.k: expected a single value"},
		{"${NAME}: x", "f.yaml:1:1: a key cannot hold a reference: write it out"},
		{"a: *x", "f.yaml:1:4: a: there is no such anchor: define it, or quote the value if it begins with *"},
		{"a: !!int 3", "f.yaml:1:4: a: a tag is not allowed here: remove it, or quote the value if it begins with !"},
		{"a: 1\n---\nb: 2", "f.yaml:3:2: a second document begins here: keep one"},
		{"# nothing", "f.yaml:1:1: the file is empty: write processes into it"},
		{"a: 'x", "f.yaml:1:4: the file is not YAML from here on: could not find end character of single-quoted text"},
		{"a:\n\tb: x", "f.yaml:2:1: the file is not YAML from here on: found character '\t' that cannot start any token"},
		{"b: x\na: \ue000", "f.yaml:2:1: the line has a private-use character of Unicode: remove it"},
	} {
		_, err := read(c.text, map[string]string{"BIG": "98765", "EMPTY": ""})
		require.Error(t, err, c.text)
		first, _, _ := strings.Cut(err.Error(), "\n")
		require.Equal(t, c.want, first, c.text)
		require.NotContains(t, err.Error(), "98765")
	}
}

func TestFaults_AllAtOnceWithTheirLines(t *testing.T) {
	t.Parallel()
	_, err := read("n: many\n\td: x", nil)
	require.Error(t, err)
	_, err = read("w: three\nn: many # much\nc: x\n", nil)
	require.EqualError(t, err, strings.Join([]string{
		`f.yaml:1:4: w: "three" is not known here: write one or two`,
		`     1 | w: three`,
		`       |    ^`,
		`f.yaml:2:4: n: "many" is not a whole number: write one from 1 to 10`,
		`     2 | n: many`,
		`       |    ^`,
		`f.yaml:3:1: the key "c" is not known: the keys here are a, b, n, d, p, w, s, m`,
		`     3 | c: ***`,
		`       | ^`,
	}, "\n"))
}

// A typo in a key is seen, wherever it stands.
func TestFaults_ShowKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: {status: confirmed}":     "1 | a: {status: ***}",
		"tabel: {nmae: bookings}":    "1 | tabel: {nmae: ***}",
		"tabel: [{nmae: x}, {b: y}]": "1 | tabel: [{nmae: ***}, {b: ***}]",
		"{sercet: hunter2, n: ${S}}": "1 | {sercet: ***, n: ${S}}",
		"password: {hunter2: x}":     "1 | password: {***: ***}",
		"m: {k: {timeout: 5s}}":      "1 | m: {k: {timeout: ***}}",
		// A secret may be in the line, and the message has the key.
		"{a: xsecrets, secrets: secrets}":      "1 | *** secrets: ***\n       |     ^",
		"n: 3\nsecrets: secrets":               "2 | secrets: ***\n       | ^",
		"a: {secretsA: 1}\n":                   "1 | a: {secretsA: ***}\n       | ^",
		"n: 3\nm:\n  secrets:\n  x: secrets\n": "3 |   secrets:\n       |   ^",
		"{n: 3, \"secrets\": secrets}":         "1 | ***",
	} {
		_, err := read(text, map[string]string{"S": "CANARY"})
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "CANARY", text)
	}
}

func TestFaults_ShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{s: CANARY, c: 1}",
		"n: x # was s: CANARY",
		"# s: CANARY\n#: CANARY",
		"{n: x, CANARY}",
		"{n: s: CANARY, w: x}",
		"{s: 'CANARY', n: x}",
		"{n: x, s: \"CANARY\\n\\\"CANARY\", d: x}",
		"{s: ${S}, n: x}",
		"{s: pre${S}, n: x}",
		"{n: ${S}, w: ${S}, p: ${S}, d: ${S}}",
		"sercet: CANARY",
		"{s: [CANARY]}",
		"s: {k: CANARY}",
		"sercet: {secret: {CANARY: x}}",
		"c: [CANARY, {k: CANARY}]",
		"c: {CANARY: , k: x}",
		"{s: &x CANARY, c: *x}",
		"s: 1\ns: CANARY",
		"{m: {k: CANARY, k: CANARY}}",
		"{m: {k: [CANARY]}}",
		"CANARY",
		"- CANARY",
		"s: |\n  CANARY\nn: x",
		"s: \"CANARY\n  CANARY\"\nn: x\n",
		"<<: {s: CANARY, n: x}",
		// No YAML:
		"s: 1\nsecret: \"CANARY\n",
		"database: 'CANARY",
		"a: {url: CANARY, [",
		"s: |\n CANARY\n\tCANARY",
	} {
		_, err := read(text, map[string]string{"S": "CANARY"})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "CANARY", text)
	}
}

// A fault that is found before the file is read, or in what is not read, shows no line of
// which it is not known what is secret.
func TestParse_AFaultBesideWhatWasNotReadShowsNoSecret(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"blank lines":          "s: CANARYpw\na: |\n" + strings.Repeat("\n", 10_001),
		"a private character":  "s: CANARYpw\ue000",
		"one beside a comment": "# CANARYpw\ue000",
		"many keys":            "{s: CANARYpw, " + strings.Repeat("a: 1, ", 10_000) + "b: 1}",
		"deep":                 "{s: CANARYpw, a: " + strings.Repeat("[", 60),
		"a second document":    "a: 1\n---\ns: CANARYpw",
		"a scalar as one":      "a: 1\n---\nCANARYpw",
		"a mapping as one":     "a: 1\n--- {s: CANARYpw}",
		"an alias":             "a: *CANARYpw",
		"an alias of a secret": "s: *CANARYpw",
		"a tag":                "a: !CANARYpw",
		"a tag of two":         "s: !!CANARYpw x",
	} {
		_, err := read(text, nil)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "CANARY", name)
	}
}
