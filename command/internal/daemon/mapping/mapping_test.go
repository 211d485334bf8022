package mapping_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/mapping"
)

var bounds = mapping.Bounds{Time: 30 * time.Second, Bytes: 1000}

func run(t *testing.T, program, payload string, b mapping.Bounds) (string, error) {
	t.Helper()
	up, err := mapping.Compile(program, b)
	require.NoError(t, err)
	made, err := up(json.RawMessage(payload))
	return string(made), err
}

func TestCompile_KeepsTheDigitsOfNumbersThatItDoesNotChange(t *testing.T) {
	t.Parallel()
	made, err := run(t, ".seats = (.count // 1) | del(.count)", `{"count": 2, "amount": 12345678901234567890.120, "big": 123456789012345678901234567890}`, bounds)
	require.NoError(t, err)
	require.Equal(t, `{"amount":12345678901234567890.120,"big":123456789012345678901234567890,"seats":2}`, made)
}

func TestCompile_ErrorsQuoteNoData(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		".name[]":                            "jq: cannot iterate over: string […]",
		".name + 1":                          "jq: cannot add: string […]",
		`.name | error`:                      "the mapping raised an error (its text is not shown, since it may be data)",
		`"x" + .name | error({key: .})`:      "the mapping raised an error (its text is not shown, since it may be data)",
		".name | fromjson":                   "jq: fromjson cannot be applied to […]",
		`{(.name): 1}[.id]`:                  "jq: expected an array but got: object […]",
		`.name | test("[" + .)`:              "jq: ",
		"empty":                              "the mapping has no result, and needs one",
		".name, .id":                         "the mapping has several results, and may have one",
		`[range(1000)] | map("abc") | add`:   "the result of the mapping has 3002 bytes, and may have 1000",
		"halt_error":                         "the mapping raised an error (its text is not shown, since it may be data)",
		`.name | ltrimstr("S") | tonumber`:   "jq: tonumber cannot be applied to […]",
		`.name | strptime("%Y")`:             "jq: strptime",
		`.[.id]`:                             "jq: expected",
		`.name as [$a] | {a: $a} | .a.b.c`:   "jq: expected",
		`$__prog_args_unknown // error("x")`: "",
	} {
		up, err := mapping.Compile(program, bounds)
		if want == "" {
			require.Error(t, err, program)
			continue
		}
		require.NoError(t, err, program)
		_, err = up(json.RawMessage(`{"name": "Smith4711", "id": 815}`))
		require.ErrorContains(t, err, want, program)
		require.NotContains(t, err.Error(), "Smith", program)
		require.NotContains(t, err.Error(), "815", program)
	}
}

func TestCompile_AMappingThatDoesNotEndIsEnded(t *testing.T) {
	t.Parallel()
	_, err := run(t, "def f: f; f", "{}", mapping.Bounds{Time: 20 * time.Millisecond, Bytes: 10})
	require.EqualError(t, err, "the mapping took more than 20ms")
}

// The time to read a number grows with the square of its digits, and no deadline ends it.
func TestCompile_RefusesANumberThatIsTooLong(t *testing.T) {
	t.Parallel()
	const refused = "a number has more than 1000 characters, which is more than a mapping takes"
	longest := strings.Repeat("7", 1000)
	for _, one := range []struct{ program, payload string }{
		{".b = 1", `{"a": [{"c": %s}]}`},
		{".a |= tonumber", `{"a": "%s"}`},
		{".a |= fromjson", `{"a": "[%s]"}`},
		{`def f: .a | tonumber; {a: f} | .`, `{"a": "%s"}`},
		{`.a[0] |= (. as $x | [$x] | map(tonumber) | .[0])`, `{"a": ["%s"]}`},
	} {
		_, err := run(t, one.program, fmt.Sprintf(one.payload, longest), mapping.Bounds{Time: time.Minute, Bytes: 5000})
		require.NoError(t, err, one.program)
		for _, number := range []string{longest + "7", longest + "e1", "-" + longest, longest[1:] + ".5", "1e" + longest} {
			_, err := run(t, one.program, fmt.Sprintf(one.payload, number), mapping.Bounds{Time: time.Minute, Bytes: 5000})
			require.EqualError(t, err, refused, one.program)
		}
	}
	made, err := run(t, ".a |= fromjson", `{"a": "\"`+longest+`7\""}`, mapping.Bounds{Time: time.Minute, Bytes: 5000})
	require.NoError(t, err, "a text is no number")
	require.Contains(t, made, longest)
}

func TestCompile_AnExponentTakesNoDigits(t *testing.T) {
	t.Parallel()
	made, err := run(t, ".b = .a * 100 | .c = (.d | tonumber)", `{"a": 1e1000000, "d": "1e-1000000"}`, bounds)
	require.NoError(t, err)
	require.Equal(t, `{"a":1e1000000,"b":1.7976931348623157e+308,"c":0,"d":"1e-1000000"}`, made)
}

func TestCompile_AMappingSeesNoEnvironmentAndNoFile(t *testing.T) {
	t.Setenv("SECRET", "x")
	made, err := run(t, "[$ENV.SECRET, env.SECRET]", "{}", bounds)
	require.NoError(t, err)
	require.Equal(t, "[null,null]", made)
	_, err = mapping.Compile(`import "a" as a; .`, bounds)
	require.ErrorContains(t, err, "it is not a jq program")
}

func TestCompile_RefusesWhatIsNoProgram(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"", ".a |", "nosuch(1)"} {
		_, err := mapping.Compile(program, bounds)
		require.ErrorContains(t, err, "it is not a jq program", program)
	}
}
