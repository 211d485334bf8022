package mapping_test

import (
	"encoding/json"
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
