package daemon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// Whatever a file says: reading it neither panics nor shows what a reference
// stands for; each fault has its place; and what is accepted can be built.
func FuzzParse(f *testing.F) {
	f.Add(contract, "whsec_")
	f.Add("processes: {a: {source: {table: '${T}.b.c'}, sink: {stdout: {}}}}", "")
	f.Add("schema: ${X}\nprocesses: {a: {source: {table: t, columns: {id: '${Y}', key: k}}, sink: {stdout: {}}}}", "two words")
	f.Add("processes: {a: {source: {table: t, order: '${O}', latency: '${L}'}, sink: {sql: {statement: 'SELECT @id, ${S}'}}}}", "SELECT @")
	f.Add("processes: {a: {source: {table: t}, sink: {webhook: {url: '${U}', headers: {X-Key: '${K}'}, timeout: '${T}', format: '${F}'}}}}", "http://u:p@h/")
	f.Add("database: '${D}'\nprocesses: {a: {source: {table: t}, sink: {stdout: }, batch: '${B}', poll: ${P}, retry: {jitter: ${J}}, on_poison: ${O}}}", "host=h port=")
	f.Add("database: 'postgres://${U}@h/d?sslmode=${M}&pool_max_conns=${N}'\nprocesses: {'${A}': {}, b: &x {source: *x, <<: *x}}", "&x=")
	f.Fuzz(func(t *testing.T, text, value string) {
		if strings.Contains(text, "file:") {
			t.Skip("would read files of this machine")
		}
		const canary = "CANARY"
		if strings.Contains(text, canary) {
			t.Skip("not by a reference")
		}
		env := func(name string) (string, bool) { return value + canary, !strings.HasPrefix(name, "NOPE") }
		config, err := daemon.Parse("f.yaml", []byte(text), env, kinds)
		if err != nil {
			require.NotContains(t, err.Error(), canary)
			require.Regexp(t, `^f\.yaml:[1-9]\d*:[1-9]\d*: `, err.Error())
			return
		}
		require.NotEmpty(t, config.Processes)
		for _, p := range config.Processes {
			require.NoError(t, daemon.Build(p))
		}
	})
}
