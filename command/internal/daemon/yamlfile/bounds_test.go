package yamlfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
)

func TestParse_AFileThatAReferenceNamesHasAnEnd(t *testing.T) {
	t.Parallel()
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	_, err := read("a: ${file:"+large+"}", nil)
	require.ErrorContains(t, err, "it has more than 1048576 bytes")
}

func TestParse_ASmallFileStaysSmall(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("x", 1<<20)), 0o600))
	for _, c := range []struct{ text, problem string }{
		{"a: " + strings.Repeat("${file:"+secret+"}", 1000), "expand to more than 8388608 bytes"},
		{"s: &a " + strings.Repeat("x", 1<<19) + "\nm:\n" + aliases(1000), "expand to more than 8388608 bytes"},
		{mergeBomb(), "lead to too many keys"},
		{"a: " + strings.Repeat("[", 1000), "are nested"},
		{"a:\n  " + strings.Repeat("- ", 1000), "are nested"},
		{stairs(300), "are nested"},
		{strings.Repeat("a:\n", 20_000), "more than 10000 keys"},
		{"a: [" + strings.Repeat("1,", 20_000) + "1]", "more than 10000 keys or entries"},
		{"a:\n" + strings.Repeat("- 1\n", 20_000), "more than 10000 keys or entries"},
		{"a: |\n" + strings.Repeat("\n", 300_000), "blank lines, and may have 10000"},
		{"a: |\n" + strings.Repeat("  \r", 20_000), "blank lines, and may have 10000"},
		{strings.Repeat("--- a\n", 200), "more than 10000 keys or entries"},
		{strings.Repeat("a\n...\n", 200), "more than 10000 keys or entries"},
		{strings.Repeat("? a\n", 200), "more than 10000 keys or entries"},
	} {
		_, err := read(c.text, nil)
		require.ErrorContains(t, err, c.problem)
		require.Less(t, len(err.Error()), 1<<16)
	}
}

// aliases are keys with the same text.
func aliases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: *a\n", i)
	}
	return b.String()
}

// mergeBomb has mappings, each of which merges the one before it ten times.
func mergeBomb() string {
	var b strings.Builder
	b.WriteString("b: &m0 {a: x}\n")
	for i := 1; i < 6; i++ {
		fmt.Fprintf(&b, "k%d: &m%d {%s}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("<<: *m%d, ", i-1), 10), ", "))
	}
	return b.String() + "<<: *m5\n"
}

// stairs are mappings within mappings, by indentation.
func stairs(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "k:\n")
	}
	return b.String()
}

// hostileLimit bounds the memory that the parser asks for, in bytes, for a file of 64 KiB:
// above what any of these takes, and below what twice as many keys would. A clock would
// count what else the machine does.
const hostileLimit = 768 << 20

// Not parallel: it counts all memory that is asked for.
func TestParse_AHostileFileOf64KiBTakesBoundedWork(t *testing.T) {
	const size = 64 << 10
	fill := func(line string) string { return strings.Repeat(line, size/len(line)) }
	for name, text := range map[string]string{
		"stairs": stairs(360), "stairs within the bound": strings.Repeat(stairs(40), 70), "dashes": fill("- "), "brackets": fill("["), "braces": fill("{a: "),
		"anchors": fill("a: &x y\n"), "aliases": "a: &x y\n" + fill("b: *x\n"), "merges": "a: &x {y: z}\n" + fill("<<: *x\n"), "chain of aliases": fill("- &a *a\n"),
		"complex keys": fill("? a\n: b\n"), "nested complex keys": fill("? "), "tags": fill("!!a "), "quotes": fill("\""), "references": fill("a: ${X}\n"),
		"half references": fill("${"), "comments": fill("#\n"), "documents": fill("---\n"), "blocks": fill("a: |\n b\n"), "one line": "a: " + fill("x "), "keys": fill("a:\n"),
		"colons": fill(":"), "tabs": fill("\t"), "carets": fill("&a "), "stars": fill("*a "), "continued": "a: b\n" + fill(" c\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = read(text, nil)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(hostileLimit))
		})
	}
}

// lists reads every key of a file as a list, and counts their elements.
func lists(text string) (elements int, err error) {
	f := yamlfile.Parse("f.yaml", []byte(text), environment(nil))
	if err := f.Err(); err != nil {
		return 0, err
	}
	m := f.Root().AnyMapping()
	for _, name := range m.Names() {
		m.Read(name, func(n yamlfile.Node) { elements += len(n.List()) })
	}
	return elements, f.Err()
}

// aliasedLists is a list of the same element, and keys with aliases of it.
func aliasedLists(element string, elements, aliases int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "l: &l [%s]\n", strings.TrimSuffix(strings.Repeat(element+",", elements), ","))
	for i := range aliases {
		fmt.Fprintf(&b, "k%d: *l\n", i)
	}
	return b.String()
}

// Not parallel: it counts all memory that is asked for.
func TestParse_AliasesOfAListLeadToABoundedNumberOfElements(t *testing.T) {
	for element, problem := range map[string]string{
		`""`: "lead to too many entries of lists", "x": "lead to too many entries of lists", strings.Repeat("x", 2000): "expand to more than 8388608 bytes",
	} {
		n := min(4000, 1<<16/len(element))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := lists(aliasedLists(element, n, 4000))
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, problem)
		require.Equal(t, 1, strings.Count(err.Error(), problem))
		require.LessOrEqual(t, got, 100_000)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(hostileLimit))
	}
	got, err := lists(aliasedLists("x", 900, 99))
	require.NoError(t, err)
	require.Equal(t, 90_000, got)
}

// Not parallel: it counts all memory that is asked for.
func TestParse_AliasesOfALongTextMakeShortFaults(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	unknown, number := func(n yamlfile.Node) { n.Mapping("source", "sink") }, func(n yamlfile.Node) { n.Int(1, 10) }
	for name, c := range map[string]struct {
		anchor string
		read   func(yamlfile.Node)
	}{"key": {`{"` + long + `": 1}`, unknown}, "number": {long, number}} {
		var before, after runtime.MemStats
		text := "a: &a " + c.anchor + "\n" + strings.TrimPrefix(strings.ReplaceAll("\n"+aliases(2000), "\n  ", "\n"), "\n")
		f := yamlfile.Parse("f.yaml", []byte(text), environment(nil))
		require.NoError(t, f.Err())
		m := f.Root().AnyMapping()
		runtime.ReadMemStats(&before)
		for _, key := range m.Names() {
			m.Read(key, c.read)
		}
		err := f.Err()
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 1<<18, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20), name)
	}
}

// Each fault shows its line, and compares it with the secrets beside it. That takes no more for a long line.
func TestErr_ALongLineIsNotShown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "unknown%d: 1, ", i)
	}
	f := yamlfile.Parse("f.yaml", []byte("a: {"+b.String()+"z: 1}\nb: "+strings.Repeat("y", 1<<15)+"\n"), environment(nil))
	f.Root().Mapping("a", "b").Read("a", func(n yamlfile.Node) { n.Mapping("none") })
	require.ErrorContains(t, f.Err(), `the key "unknown0" is not known`)
	require.Less(t, len(f.Err().Error()), 1<<16)
}
