package layout

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ordered-dispatcher/ordered-dispatcher"

// arrows are the packages of this tree that each directory may import: those
// that follow it here. A trailing slash stands for all directories below.
var arrows = map[string][]string{
	"internal/answer":         {},
	"internal/bounded":        {},
	"internal/child":          {"internal/knob", "internal/secret", "internal/visible"},
	"internal/ending":         {"internal/visible"},
	"internal/prepared":       {},
	"internal/privilege":      {"internal/prepared", "internal/visible"},
	"internal/outcome":        {},
	"cursor/internal/tables":  {"internal/answer", "internal/prepared"},
	"cursor/operator":         {"cursor", "cursor/internal/tables", "internal/answer", "internal/privilege", "internal/visible"},
	"cursor":                  {"cursor/internal/tables", "internal/answer", "internal/ending", "internal/knob", "internal/prepared", "internal/visible"},
	"processor":               {"cursor", "internal/knob", "internal/outcome", "internal/packed", "internal/visible"},
	"sources/":                {"cursor", "processor", "internal/answer", "internal/knob", "internal/pgname", "internal/prepared", "internal/privilege", "internal/visible", "self"},
	"sinks/":                  {"cursor", "processor", "internal/answer", "internal/bounded", "internal/child", "internal/knob", "internal/outcome", "internal/packed", "internal/pgurl", "internal/pgwall", "internal/plaintext", "internal/prepared", "internal/privilege", "internal/secret", "internal/signature", "internal/visible", "sinks", "sinks/internal/jsonline", "sinks/internal/route", "sinks/internal/wire", "self"},
	"migrations":              {"internal/answer", "internal/ending", "internal/pgshape", "internal/pgurl", "internal/pgwall", "internal/prepared", "internal/visible"},
	"internal/pglocal":        {"self"},
	"internal/link":           {},
	"internal/knob":           {},
	"internal/secret":         {"internal/visible"},
	"internal/visible":        {},
	"internal/pgname":         {},
	"internal/pgshape":        {},
	"internal/pgurl":          {"internal/bounded", "internal/closest"},
	"internal/closest":        {},
	"internal/pgwall":         {},
	"internal/plaintext":      {},
	"internal/quantity":       {},
	"internal/signature":      {},
	"readmodel":               {"internal/knob", "internal/packed", "internal/visible", "cursor", "processor"},
	"outbox":                  {"claim", "internal/packed", "internal/pgname", "internal/pgshape", "internal/zstd", "sources/table"},
	"shadow":                  {"cursor", "processor", "sinks", "internal/pgshape", "internal/prepared", "internal/privilege", "internal/visible"},
	"retention":               {"cursor", "cursor/operator", "processor", "sources/table", "internal/knob", "internal/visible"},
	"claim":                   {"internal/bounded", "internal/packed"},
	"claimcheck":              {"claim"},
	"internal/packed":         {},
	"stores":                  {"claim", "retention"},
	"stores/buckets/":         {"claim", "claimcheck", "internal/bounded", "retention", "stores", "stores/buckets"},
	"internal/zstd":           {},
	"payload":                 {"claim", "internal/packed", "internal/zstd", "processor"},
	"upcast":                  {"internal/packed", "internal/visible", "processor"},
	"inbox":                   {"internal/signature"},
	"command/internal/draft":  {"sinks", "sources/table", "internal/knob", "internal/pgname", "internal/visible"},
	"command/internal/fold":   {},
	"command/internal/prove":  {"command/internal/draft", "command/internal/fold", "cursor", "processor", "sources/table", "internal/pgname", "internal/quantity", "internal/visible"},
	"command/internal/screen": {"command/internal/daemon", "command/internal/fold", "command/internal/screen", "cursor", "cursor/operator", "processor", "sources/table", "internal/quantity", "internal/visible"},
	"command/internal/notify": {"internal/child", "internal/knob", "internal/plaintext", "internal/quantity", "internal/secret", "internal/signature", "internal/visible"},
}

// inside are the packages of the program that each of these may import: daemon <- desk <- admin. visitor is what
// admin and the pages know of each other.
var inside = map[string][]string{
	"command/internal/desk":          {"command/internal/daemon"},
	"command/internal/admin":         {"command/internal/daemon", "command/internal/desk", "command/internal/admin/visitor"},
	"command/internal/admin/visitor": {},
	"command/internal/admin/console": {"command/internal/desk", "command/internal/admin/visitor"},
}

// unitOf is the nearest package of inside that a directory belongs to, or else its package of the program.
func unitOf(dir string) string {
	nearest := ""
	for unit := range inside {
		if below(dir, unit) && len(unit) > len(nearest) {
			nearest = unit
		}
	}
	if nearest == "" && below(dir, "command/internal/daemon") {
		return "command/internal/daemon"
	}
	return nearest
}

// TestImports holds the arrows of the architecture:
// cursor <- processor <- sources/*, sinks/* <- command/internal/daemon <- cmd.
func TestImports(t *testing.T) {
	t.Parallel()
	for dir, imports := range shippedImports(t, filepath.Join("..", "..")) {
		for _, path := range imports {
			require.Empty(t, fault(dir, path))
		}
	}
}

func TestImports_FindsArrowsThatPointTheOtherWay(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"cursor", module + "/processor"},
		{"cursor", module + "/cursor/operator"},
		{"cursor/internal/tables", module + "/cursor"},
		{"cursor/operator", module + "/processor"},
		{"processor", module + "/cursor/operator"},
		{"sources/table", module + "/cursor/operator"},
		{"sinks/sql", module + "/cursor/operator"},
		{"processor", module + "/sources/table"},
		{"sources/table", module + "/sinks/sql"},
		{"sinks/sql", module + "/sinks/webhook"},
		{"sinks/sql", module + "/sources/table"},
		{"sinks/sql/internal/x", module + "/command/internal/daemon"},
		{"command/internal/daemon", module + "/internal/pgtest"},
		{"command/internal/daemon", module + "/cmd/ordered-dispatcher"},
		{"sources/table", "github.com/oklog/run"},
		{"processor", "github.com/prometheus/client_golang/prometheus"},
		{"cmd/ordered-dispatcher", "github.com/prometheus/client_golang/prometheus"},
		{"command/internal/daemon", "go.opentelemetry.io/otel/sdk/trace"},
		{"cursor", "github.com/stretchr/testify/require"},
		{"internal/pglocal", "github.com/fergusstrange/embedded-postgres"},
		{"sources/table", module + "/retention"},
		{"cursor/operator", module + "/retention"},
		{"sinks/kafka", module + "/command"},
		{"cmd/ordered-dispatcher", module + "/proof/torture/history"},
		{"outbox", module + "/processor"},
		{"inbox", module + "/sinks/webhook"},
		{"stores", module + "/stores/buckets"},
		{"command/internal/daemon", module + "/stores/buckets/s3"},
		{"command/internal/daemon", module + "/claimcheck"},
		{"stores/buckets/s3", module + "/command"},
		{"shadow", module + "/sinks/webhook"},
		{"command/internal/prove", module + "/command/internal/daemon"},
		{"command/internal/draft", module + "/command/internal/daemon"},
		{"command/internal/daemon", module + "/command/internal/desk"},
		{"command/internal/desk", module + "/command/internal/admin"},
		{"command/internal/admin", module + "/command/internal/admin/console"},
		{"command/internal/admin/console", module + "/command/internal/admin"},
		{"command/internal/admin/console", module + "/command/internal/daemon"},
		{"command/internal/admin/visitor", module + "/command/internal/desk"},
		{"command/internal/daemon", module + "/command/internal/screen"},
		{"command/internal/screen/live", module + "/command"},
	} {
		require.NotEmpty(t, fault(c[0], c[1]), c)
	}
	require.Empty(t, fault("sinks/sql/internal/x", module+"/sinks/sql"))
}

// A sink is one folder, and a line of main.
func TestProgram_HasEverySinkWithASpec(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	program := shippedImports(t, root)["cmd/ordered-dispatcher"]
	specs, err := filepath.Glob(filepath.Join(root, "sinks", "*", "spec.go"))
	require.NoError(t, err)
	for _, spec := range specs {
		require.Contains(t, program, module+"/sinks/"+filepath.Base(filepath.Dir(spec)))
	}
}

// A kind of bucket is one package, and a line of main.
func TestProgram_HasEveryStore(t *testing.T) {
	t.Parallel()
	all := shippedImports(t, filepath.Join("..", ".."))
	for dir := range all {
		if kind, ok := strings.CutPrefix(dir, "stores/buckets/"); ok {
			require.Contains(t, all["cmd/ordered-dispatcher"], module+"/stores/buckets/"+kind)
		}
	}
	require.Contains(t, all, "stores/buckets/s3")
}

// fault says what is wrong with an import; "" if nothing is.
func fault(dir, path string) string {
	local, ours := strings.CutPrefix(path, module+"/")
	switch {
	case strings.Contains(path, "testify") || strings.HasPrefix(path, "pgregory.net/rapid"):
		return dir + " is shipped and imports " + path
	case wiring(path) && !below(dir, "cmd", "command", "proof/demo", "proof/bench", "proof/torture", "proof/mutants", "proof/services", "proof/deploy"):
		return dir + " imports " + path + ": that is for the outside of the program"
	case strings.HasPrefix(path, "github.com/prometheus/") && !below(dir, "command/internal/daemon"):
		return dir + " imports " + path + ": only the daemon has metrics"
	case strings.Contains(path, "embedded-postgres") && !below(dir, "proof/fetchpg"):
		return dir + " imports " + path + ": nothing that ships may bring it along"
	case strings.HasPrefix(path, "go.opentelemetry.io/otel/sdk"):
		return dir + " imports " + path + ": the program that uses the library chooses it"
	case ours && !arrow(dir, local):
		return dir + " imports " + local + ": the arrow points the other way"
	default:
		return ""
	}
}

// wiring are packages that only the outside of the program knows.
func wiring(path string) bool {
	return slices.Contains([]string{
		"github.com/oklog/run", "github.com/lmittmann/tint", "github.com/alecthomas/kong", "github.com/goccy/go-yaml", "flag", "os/signal",
	}, path)
}

func arrow(from, to string) bool {
	if below(to, "cmd", "internal/pgtest", "internal/brokertest", "internal/tcptest", "internal/waittest") {
		return false // nothing imports a command, and tests alone import theirs
	}
	if below(to, "proof", "examples") {
		return below(from, "proof")
	}
	if below(from, "command/internal/desk", "command/internal/admin") && below(to, "command/internal") {
		return slices.Contains(inside[unitOf(from)], unitOf(to)) || unitOf(from) == unitOf(to)
	}
	if below(from, "command/internal/daemon") {
		return to == "stores" || below(to, "claim", "cursor", "payload", "processor", "retention", "sources", "upcast", "sinks", "readmodel", "shadow", "migrations", "outbox", "internal/answer", "internal/bounded", "internal/closest", "internal/knob", "internal/outcome", "internal/pgname", "internal/pgurl", "internal/pgwall", "internal/plaintext", "internal/prepared", "internal/privilege", "internal/quantity", "internal/secret", "internal/visible", "command/internal/daemon", "command/internal/notify")
	}
	origin := "" // the nearest one: arrows may also have a directory below another one
	for dir := range arrows {
		if below(from, strings.TrimSuffix(dir, "/")) && len(dir) > len(origin) {
			origin = dir
		}
	}
	if origin == "" {
		return true
	}
	self := slices.Contains(arrows[origin], "self") && below(to, unit(from))
	return self || slices.Contains(arrows[origin], to)
}

// unit is the source or sink that a directory belongs to.
func unit(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func below(dir string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") })
}

// shippedImports returns what each directory imports outside of its tests.
// Helpers for tests are not shipped, though they are packages.
func shippedImports(t *testing.T, root string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		local, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && local != "."
			if hidden || entry.Name() == "testdata" || strings.HasSuffix(entry.Name(), "test") || local == "tools" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(local))
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			all[dir] = append(all[dir], name)
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, all, "cursor")
	require.Contains(t, all, "cmd/ordered-dispatcher")
	require.Contains(t, all, "sinks/kafka")
	require.Contains(t, all, "examples/own-sink")
	return all
}
