package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// given is a program of one package, loop, that consists of these files.
func given(t *testing.T, files ...string) *program {
	t.Helper()
	p := newProgram(t.TempDir())
	require.NoError(t, os.Mkdir(filepath.Join(p.root, "loop"), 0o700))
	for i, text := range files {
		name := filepath.Join(p.root, "loop", string(rune('a'+i))+".go")
		require.NoError(t, os.WriteFile(name, []byte("package loop\n\n"+text), 0o600))
	}
	return p
}

// changed is the text of the file that the changes are in, without the package clause.
func changed(t *testing.T, p *program, changes ...change) string {
	t.Helper()
	files, err := mutate("p", "loop.TestX", changes...).apply(p)
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, text := range files {
		return text[len("package loop\n\n"):]
	}
	return ""
}

func TestCode_ReplacesWhatMatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, old, new, out string }{
		"an expression":                 {"if a > b { c() }", "a > b", "false", "if false { c() }"},
		"a call that is a statement":    {"a(); b(1)", "b(1)", "b(2)", "a(); b(2)"},
		"a statement":                   {"a := 1; b()", "a := 1", "a := 2", "a := 2; b()"},
		"a statement before a header":   {"if x := f(); x { g() }", "x := f()", "x := h()", "if x := h(); x { g() }"},
		"statements":                    {"a()\nb()\nc()", "a()\nb()", "b()\na()", "b()\na()\nc()"},
		"statements of a case":          {"switch { case a: b(); c() }", "b(); c()", "d()", "switch { case a: d() }"},
		"cases":                         {"switch { case a: b(); case c: d() }", "case c: d()", "", "switch { case a: b();  }"},
		"an element with a key":         {"t := T{A: 1, B: 2}", "B: 2", "B: 3", "t := T{A: 1, B: 3}"},
		"formatted in another way":      {"f(\n\ta,\n\tb, // why\n)", "f(a, b)", "g()", "g()"},
		"strings quoted in other ways":  {"f(\"x\")", "f(`x`)", "g()", "g()"},
		"a statement that goes":         {"a(); b()", "b()", "", "a(); "},
		"several that go":               {"a(); b(); c(1)", "b(); c(1)", "", "a(); "},
		"an argument that goes":         {"f(a, b)", "a", "", "f(b)"},
		"a last argument that goes":     {"f(a, b)", "b", "", "f(a)"},
		"a case's last value that goes": {"switch a { case b, c: }", "c", "", "switch a { case b: }"},
		"an only element that goes":     {"t := T{\n\ta,\n}", "a", "", "t := T{\n\t\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := given(t, "func f() {\n"+c.in+"\n}\n")
			require.Equal(t, "func f() {\n"+c.out+"\n}\n", changed(t, p, code("loop.f", c.old, c.new)))
		})
	}
}

func TestCode_MatchesNothingElse(t *testing.T) {
	t.Parallel()
	for in, old := range map[string]string{
		"f(a...)":               "f(a)",
		"f(a, b)":               "f(a)",
		"a := 1":                "a = 1",
		`f("x y")`:              `f("xy")`,
		"if a { b() }":          "if a { b(); b() }",
		"var _ = func() int {}": "func() {}",
	} {
		_, err := mutate("p", "loop.TestX", code("loop.f", old, "x()")).apply(given(t, "func f() {\n"+in+"\n}\n"))
		require.ErrorContains(t, err, `mutant "p": let it follow the code`, in)
	}
}

func TestText_MatchesStringsWhateverTheirWhiteSpace(t *testing.T) {
	t.Parallel()
	p := given(t, "const q, r = `SELECT a\n\tFROM   b` + x, \"y\"\n\nfunc f() { g(\"say \\\"b\\\"\") }\n\ntype T struct { A int `b:\"c\"` }\n")
	require.Contains(t, changed(t, p, text("loop.q", "a FROM b", "c")), "const q, r = `SELECT c` + x, \"y\"\n")
	require.Contains(t, changed(t, p, text("loop.f", `say "b"`, `x`)), "g(\"x\")")
	require.Contains(t, changed(t, p, text("loop.T", `b:"c"`, `d:"e"`)), "`d:\"e\"`")
	require.Contains(t, changed(t, p, text("loop.q", "SELECT", "1"), text("loop.q", "b", "2")), "`1 a\n\tFROM   2`")
	_, err := text("loop.q", "afrom", "").edit(p)
	require.ErrorContains(t, err, "0 matches")
}

func TestText_ChangesAFileThatIsNotGo(t *testing.T) {
	t.Parallel()
	p := given(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "1.sql"), []byte("a  b"), 0o600))
	files, err := mutate("p", "loop.TestX", text("1.sql", "a b", "c")).apply(p)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"1.sql": "c"}, files)
}

func TestChange_FollowsADeclarationToAnotherFile(t *testing.T) {
	t.Parallel()
	c := code("loop.Lease.Advance", "a()", "b()")
	method := "func (l *Lease) Advance() { a() }\n"
	other := "func Advance() { a() }\n"
	require.Contains(t, changed(t, given(t, method, other), c), "Advance() { b() }")
	require.Contains(t, changed(t, given(t, other, "// It has moved.\n"+method), c), "Advance() { b() }")
	require.Contains(t, changed(t, given(t, "func (l Lease[T]) Advance() { a() }\n", other), c), "Advance() { b() }")
}

func TestChange_OfADeclarationWithAnotherNameIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	p := given(t, "func renamed() { a() }\n")
	_, err := mutate("p", "loop.TestX", code("loop.f", "a()", "b()")).apply(p)
	require.ErrorContains(t, err, "one match in [loop.renamed]: 0 declarations, not one, of loop.f")
	_, err = mutate("p", "loop.TestX", code("nowhere.f", "a()", "b()")).apply(p)
	require.ErrorContains(t, err, "0 declarations, not one, of nowhere.f")
}

func TestChange_OfSeveralMatchesNeedsAnOrdinal(t *testing.T) {
	t.Parallel()
	p := given(t, "func f() { a(); b(); a() }\n")
	c := code("loop.f", "a()", "c()")
	_, err := c.edit(p)
	require.ErrorContains(t, err, "loop.f has 2 matches, not one")
	require.Equal(t, "func f() { a(); b(); c() }\n", changed(t, p, c.nth(2)))
	_, err = c.nth(3).edit(p)
	require.ErrorContains(t, err, "loop.f has 2 matches, not one")
}

func TestApply_MakesSeveralChangesOfOneFile(t *testing.T) {
	t.Parallel()
	p := given(t, "func f() { a(); b() }\n\nconst q = `x`\n")
	require.Equal(t, "func f() { c(); d() }\n\nconst q = `y`\n",
		changed(t, p, code("loop.f", "b()", "d()"), text("loop.q", "x", "y"), code("loop.f", "a()", "c()")))
	_, err := mutate("p", "loop.TestX", code("loop.f", "a()", "c()"), code("loop.f", "a(); b()", "c()")).apply(p)
	require.ErrorContains(t, err, "two changes overlap")
}
